// One thread counts atomically, the other does not.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: the load of the plain increment may be meant as __atomic_load_n, and then orders the store after it
#include "race.h"

volatile int counter;

static void* Careful(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Careless(void* argument) {
  counter = counter + 1;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Careful, Careless);
  return Done();
}
