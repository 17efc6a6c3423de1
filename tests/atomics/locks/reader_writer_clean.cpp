// A reader-writer spin lock in one word: readers count, a writer sets the sign.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> state;
static int value;

static void LockShared() {
  for (;;) {
    int seen = state.load(std::memory_order_relaxed);
    if (seen >= 0 && state.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return;
    usleep(100);
  }
}

static void UnlockShared() { state.fetch_sub(1, std::memory_order_release); }

static void Lock() {
  for (;;) {
    int seen = 0;
    if (state.compare_exchange_weak(seen, -1, std::memory_order_acquire)) return;
    usleep(100);
  }
}

static void Unlock() { state.store(0, std::memory_order_release); }

int main() {
  std::thread reader([] {
    for (int i = 0; i < 5; i++) {
      LockShared();
      Use(value);
      UnlockShared();
    }
  });
  for (int i = 0; i < 5; i++) {
    Lock();
    value++;
    Unlock();
  }
  reader.join();
  return Done();
}
