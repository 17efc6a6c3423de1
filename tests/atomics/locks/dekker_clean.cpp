// Dekker's lock with sequentially consistent atomics.
// CLEAN
#include <atomic>

#include "race.h"
#include "run_threads.h"

static std::atomic<bool> wants[2];
static std::atomic<int> turn;
static int value;

static void Works(int self) {
  const int other = 1 - self;
  for (int i = 0; i < 5; i++) {
    wants[self] = true;
    while (wants[other]) {
      if (turn != self) {
        wants[self] = false;
        while (turn != self && wants[other]) usleep(100);
        wants[self] = true;
      }
      usleep(100);
    }
    value++;
    turn = other;
    wants[self] = false;
  }
}

int main() {
  RunNumbered(2, Works);
  return value == 10 ? Done() : 1;
}
