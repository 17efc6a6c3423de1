// A reader-writer lock with a flag for each reader; the writer takes them all.
// CLEAN
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"

struct alignas(64) Slot {
  std::atomic<bool> held{false};
};
static Slot slots[3];
long data;

static void LockOne(Slot& slot) {
  for (;;) {
    if (!slot.held.exchange(true, std::memory_order_acquire)) return;
    while (slot.held.load(std::memory_order_relaxed)) std::this_thread::yield();
  }
}

int main() {
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; me++) {
    threads.emplace_back([me] {
      for (int i = 0; i < 10; i++) {
        LockOne(slots[me]);
        Use(data);
        slots[me].held.store(false, std::memory_order_release);
      }
    });
  }
  {
    for (Slot& slot : slots) LockOne(slot);
    data++;
    for (Slot& slot : slots) slot.held.store(false, std::memory_order_release);
  }
  for (auto& thread : threads) thread.join();
  return Done();
}
