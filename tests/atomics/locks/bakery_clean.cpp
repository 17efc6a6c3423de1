// Lamport's bakery.
// CLEAN
#include <atomic>

#include "race.h"
#include "run_threads.h"

static std::atomic<int> choosing[2], number[2];
static int value;

static void Works(int self) {
  const int other = 1 - self;
  for (int i = 0; i < 5; i++) {
    choosing[self] = 1;
    number[self] = number[other] + 1;
    choosing[self] = 0;
    while (choosing[other] != 0) usleep(100);
    for (;;) {
      const int theirs = number[other], own = number[self];
      if (theirs == 0 || theirs > own || (theirs == own && other > self)) break;
      usleep(100);
    }
    value++;
    number[self] = 0;
  }
}

int main() {
  RunNumbered(2, Works);
  return value == 10 ? Done() : 1;
}
