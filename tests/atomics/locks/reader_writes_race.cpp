// Two threads that hold a lock as readers both write. Each gives it back after both have written.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
#include <atomic>

#include "race.h"
#include "run_threads.h"

static std::atomic<int> state, written;
int value;

static void Works() {
  state.fetch_add(1, std::memory_order_acquire);
  value = 1;  // [a]
  written.fetch_add(1, std::memory_order_relaxed);
  while (written.load(std::memory_order_relaxed) < 2) usleep(100);
  state.fetch_sub(1, std::memory_order_release);
}

int main() {
  RunThreads(Works, Works);
  return Done();
}
