// Bits of one word set and cleared by fetch_or and fetch_and; one of them is a lock.
// CLEAN
#include <atomic>

#include "race.h"
#include "run_threads.h"

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
  RunThreads(Works, Works);
  return value == 10 ? Done() : 1;
}
