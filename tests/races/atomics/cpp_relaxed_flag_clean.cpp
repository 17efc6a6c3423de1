// Relaxed loads and stores of one std::atomic from many threads: no race on the atomic itself.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

std::atomic<int> level;
std::atomic<long> sum;

static void Work(int mine) {
  for (int i = 0; i < 3; i++) {
    level.store(mine, std::memory_order_relaxed);
    sum.fetch_add(level.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

int main() {
  std::thread first(Work, 1);
  std::thread second(Work, 2);
  level = 3;
  Use(sum);
  first.join();
  second.join();
  return Done();
}
