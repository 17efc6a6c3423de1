// A static variable of a function.
// RACE any global:calls a a
// MAY-MISS shared: the place runs once in each thread
#include "race.h"

static void* Counter(void* argument) {
  static volatile int calls;
  calls++;  // [a]
  return argument;
}

int main(void) {
  RunTwo(Counter, Counter);
  return Done();
}
