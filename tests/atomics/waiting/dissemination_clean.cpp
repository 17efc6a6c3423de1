// A dissemination barrier of flags, sense reversed.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"

constexpr int kThreads = 4, kRounds = 2;
struct alignas(64) Flags {
  std::atomic<int> flag[2][kRounds];
};
static Flags flags[kThreads];
int cells[kThreads];

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

int main() {
  std::vector<std::thread> threads;
  for (int me = 0; me < kThreads; me++) {
    threads.emplace_back([me] {
      Barrier barrier{me};
      for (int i = 0; i < 6; i++) {
        cells[(me + i) % kThreads] = i;
        barrier.Wait();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return Done();
}
