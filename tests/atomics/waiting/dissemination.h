// A dissemination barrier of flags, sense reversed.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

constexpr int kThreads = 4, kRounds = 2;
struct alignas(64) Flags {
  std::atomic<int> flag[2][kRounds];
};
static Flags flags[kThreads];

struct Barrier {
  int me, parity = 0, sense = 1;
  void Wait() {
    for (int round = 0; round < kRounds; round++) {
      flags[(me + (1 << round)) % kThreads].flag[parity][round].store(sense,
                                                                      std::memory_order_release);
      while (flags[me].flag[parity][round].load(std::memory_order_acquire) != sense)
        std::this_thread::yield();
    }
    if (parity == 1) sense = 1 - sense;
    parity = 1 - parity;
  }
};
