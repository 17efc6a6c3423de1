// A spin lock made of compare-and-swap, freed by an exchange.
// CLEAN
#include "race.h"

int counter;
int locked;

static void* Adder(void* argument) {
  for (int i = 0; i < 3; i++) {
    int expected = 0;
    while (!__atomic_compare_exchange_n(&locked, &expected, 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
      expected = 0;
      usleep(100);
    }
    counter++;
    __atomic_exchange_n(&locked, 0, __ATOMIC_SEQ_CST);
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 6 ? Done() : 1;
}
