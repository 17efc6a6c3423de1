// std::latch polled by try_wait.
// RACE any global:cells a b
// MAY-MISS shared: who had the page first did so alone
#include <latch>
#include <thread>
#include <vector>

#include "race.h"

static std::latch latch(3);
static int cells[3];

int main() {
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; me++) {
    threads.emplace_back([me] {
      latch.count_down();
      cells[me] = me;  // [a]
    });
  }
  while (!latch.try_wait()) std::this_thread::yield();
  int sum = 0;
  for (int cell : cells) sum += cell;  // [b]
  Use(sum);
  for (auto& thread : threads) thread.join();
  return Done();
}
