// A plain load of a counter that is only added to by atomic instructions is taken for atomic:
// --plain says that it is not.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// OPTIONS --plain=counter
// TAGS fast
#include "race.h"

static int counter;

static void* Adds(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Looks(void* argument) {
  Use(counter);  // [b]
  return argument;
}

int main(void) {
  RunTwo(Adds, Looks);
  return Done();
}
