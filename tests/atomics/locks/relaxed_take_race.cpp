// A spin lock that is taken by a relaxed compare-and-swap: its holders are not ordered.
// RACE write-write global:value a a
// ALSO any a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: a relaxed compare-and-swap is the same locked instruction, which orders all on x86-64
#include <atomic>

#include "race.h"
#include "run_threads.h"

static std::atomic<int> taken;
int value;

static void Works() {
  int expected = 0;
  while (!taken.compare_exchange_strong(expected, 1, std::memory_order_relaxed)) {
    expected = 0;
    usleep(100);
  }
  value = 1;  // [a]
  taken.store(0, std::memory_order_release);
}

int main() {
  RunThreads(Works, Works);
  return Done();
}
