// One thread counts atomically, the other writes plainly.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// TAGS fast
// BUILD O0 O2 static fixed
#include "race.h"

int counter;

static void* Careful(void* argument) {
  __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Careless(void* argument) {
  counter = 0;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Careful, Careless);
  return Done();
}
