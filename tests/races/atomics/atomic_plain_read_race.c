// A plain read of a counter that another thread changes atomically.
// RACE atomic-plain global:counter a b
// MAY-MISS exact: a mov of a word only ever written atomically may be meant as an atomic load
// MAY-MISS shared: each place runs once
#include "race.h"

int counter;

static void* Careful(void* argument) {
  __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Careless(void* argument) {
  Use(counter);  // [b]
  return argument;
}

int main(void) {
  RunTwo(Careful, Careless);
  return Done();
}
