// Two threads add to one counter.
// RACE any global:counter a a
// BUILD O0 O2 static fixed stripped
// MAY-MISS shared: the first may be done before the second starts
// TAGS fast
#include "race.h"

int counter;

static void* Adder(void* argument) {
  for (int i = 0; i < 10; i++) {
    counter++;  // [a]
    __asm__ volatile("" ::: "memory");
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return Done();
}
