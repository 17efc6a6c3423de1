// Bits of one word set and cleared by fetch_or and fetch_and; one of them is a lock.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<unsigned> word;
static int value;

static void Works() {
  for (int i = 0; i < 5; i++) {
    while ((word.fetch_or(1, std::memory_order_acquire) & 1) != 0) usleep(100);
    value++;
    word.fetch_and(~1U, std::memory_order_release);
    word.fetch_xor(2, std::memory_order_relaxed);
  }
}

int main() {
  std::thread first(Works);
  std::thread second(Works);
  first.join();
  second.join();
  return value == 10 ? Done() : 1;
}
