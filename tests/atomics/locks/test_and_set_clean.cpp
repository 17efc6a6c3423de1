// A spin lock of an atomic flag.
// CLEAN
// TAGS fast
#include <atomic>

#include "count_under_lock.h"

static std::atomic_flag taken = ATOMIC_FLAG_INIT;

static void Lock() {
  while (taken.test_and_set(std::memory_order_acquire)) usleep(100);
}

static void Unlock() { taken.clear(std::memory_order_release); }

int main() { return CountUnderLock(); }
