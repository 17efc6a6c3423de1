// A spin lock made of xchg, freed by an atomic store, which is a plain mov.
// CLEAN
#include "race.h"

int counter;
int locked;

static void* Adder(void* argument) {
  for (int i = 0; i < 3; i++) {
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE) != 0) usleep(100);
    counter++;
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 6 ? Done() : 1;
}
