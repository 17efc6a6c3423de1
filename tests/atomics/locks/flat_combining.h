// Flat combining: who has the lock does the others' requests.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

struct alignas(64) Slot {
  std::atomic<int> state{0};
  long argument = 0, result = 0;
};
static Slot slots[3];
static std::atomic<bool> busy;

// apply(argument) is what all want done; by one at a time.
template <typename Apply>
long Request(int me, long argument, Apply apply) {
  Slot& mine = slots[me];
  mine.argument = argument;
  mine.state.store(1, std::memory_order_release);
  for (;;) {
    if (mine.state.load(std::memory_order_acquire) == 2) break;
    if (busy.exchange(true, std::memory_order_acquire)) {
      std::this_thread::yield();
      continue;
    }
    for (Slot& slot : slots) {
      if (slot.state.load(std::memory_order_acquire) != 1) continue;
      slot.result = apply(slot.argument);
      slot.state.store(2, std::memory_order_release);
    }
    busy.store(false, std::memory_order_release);
  }
  mine.state.store(0, std::memory_order_relaxed);
  return mine.result;
}
