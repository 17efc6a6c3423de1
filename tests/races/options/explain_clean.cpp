// --explain says what was taken for atomic, and for which reason.
// CLEAN
// OPTIONS --explain
// SAYS trapline: plain instructions taken for atomic ones:
// SAYS     debug info: it comes from std::
// SAYS     source: its line names an atomic operation
// SAYS     'lock' is given back by a thread that exchanged it before
// TSAN-DIFFERS it has no such option
// TAGS fast
#include <atomic>
#include <thread>

#include "race.h"

static int value, flag, lock;
static std::atomic<bool> ready;

static void Unlock() { *const_cast<volatile int*>(&lock) = 0; }

static void Works() {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0) usleep(100);
  value++;
  Unlock();
}

int main() {
  std::thread other([] {
    while (!ready.load(std::memory_order_acquire)) usleep(100);
    while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) usleep(100);
    Works();
  });
  ready.store(true, std::memory_order_release);
  __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
  Works();
  other.join();
  return value == 2 ? Done() : 1;
}
