// A lock made of std::atomic_flag with wait and notify.
#include <atomic>

#include "race.h"

static std::atomic_flag flag;

static void Lock() {
  while (flag.test_and_set(std::memory_order_acquire)) flag.wait(true, std::memory_order_relaxed);
}

static void Unlock() {
  flag.clear(std::memory_order_release);
  flag.notify_one();
}
