// A reader-writer lock with a flag for each reader; the writer takes them all.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

struct alignas(64) Slot {
  std::atomic<bool> held{false};
};
static Slot slots[3];

static void LockOne(Slot& slot) {
  for (;;) {
    if (!slot.held.exchange(true, std::memory_order_acquire)) return;
    while (slot.held.load(std::memory_order_relaxed)) std::this_thread::yield();
  }
}

static void UnlockOne(Slot& slot) { slot.held.store(false, std::memory_order_release); }

// Three threads read, each with a slot, and one writes.
template <typename Read, typename Write>
int RunReaders(Read read, Write write) {
  RunThreads([=] { read(slots[0]); }, [=] { read(slots[1]); }, [=] { read(slots[2]); }, write);
  return Done();
}
