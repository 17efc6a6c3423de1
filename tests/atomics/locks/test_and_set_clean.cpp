// A spin lock of an atomic flag.
// CLEAN
// TAGS fast
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic_flag taken = ATOMIC_FLAG_INIT;

static void Lock() {
  while (taken.test_and_set(std::memory_order_acquire)) usleep(100);
}

static void Unlock() { taken.clear(std::memory_order_release); }

static void Works() {
  for (int i = 0; i < 5; i++) {
    Lock();
    value++;
    Unlock();
  }
}

int main() {
  std::thread first(Works);
  std::thread second(Works);
  first.join();
  second.join();
  return value == 10 ? Done() : 1;
}
