// One thread counts atomically, the other sets the count plainly.
// RACE atomic-plain global:counter a b
// TAGS fast
// MAY-MISS shared: each place runs once
#include "race.h"

int counter;

static void* Careful(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Careless(void* argument) {
  counter = 1;  // [b]
  Escape(&counter);
  return argument;
}

int main(void) {
  RunTwo(Careful, Careless);
  return Done();
}
