// Flat combining: who has the lock does the others' requests.
// ONE-OF any global:total a b
// ONE-OF any global:total b b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"

struct alignas(64) Slot {
  std::atomic<int> state{0};
  long argument = 0, result = 0;
};
static Slot slots[3];
static std::atomic<bool> busy;
static long total;

static long Add(int me, long argument) {
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
      total += slot.argument;  // [a]
      slot.result = total;
      slot.state.store(2, std::memory_order_release);
    }
    busy.store(false, std::memory_order_release);
  }
  mine.state.store(0, std::memory_order_relaxed);
  return mine.result;
}

int main() {
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; me++) {
    threads.emplace_back([me] {
      for (int i = 0; i < 10; i++) Use(Add(me, i));
      total++;  // [b]
    });
  }
  for (auto& thread : threads) thread.join();
  return Done();
}
