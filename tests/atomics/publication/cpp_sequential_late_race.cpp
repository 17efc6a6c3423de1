// Sequentially consistent flag, but the value is written once more after it.
// RACE write-write global:value a b
// TAGS fast
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

int value;
static std::atomic<int> turn;

int main() {
  std::thread other([] {
    while (turn != 1) usleep(100);
    value = 3;  // [a]
  });
  value = 1;
  turn = 1;
  value = 2;  // [b]
  other.join();
  return Done();
}
