// Sequentially consistent stores are exchanges: they tell themselves, without debug info too.
// CLEAN
// TAGS fast
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<int> turn;

int main() {
  std::thread other([] {
    while (turn != 1) usleep(100);
    value++;
    turn = 2;
  });
  value = 1;
  turn = 1;
  while (turn != 2) usleep(100);
  const bool right = value == 2;
  other.join();
  return right ? Done() : 1;
}
