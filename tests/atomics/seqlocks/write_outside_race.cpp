// A writer counts after it has made the number even again.
// RACE write-write global:writes a a
// MAY-MISS shared: each place runs once in a thread
#include <atomic>

#include "race.h"
#include "run_threads.h"

static std::atomic<unsigned> sequence;
int writes;

static void Write() {
  sequence.fetch_add(1, std::memory_order_acq_rel);
  sequence.fetch_add(1, std::memory_order_acq_rel);
  writes = 1;  // [a]
}

int main() {
  RunThreads(Write, Write);
  return Done();
}
