// A plain read of a word that another thread changes by atomic instructions only.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: __atomic_load_n on a plain int would be the same mov at the same line
#include "race.h"

int counter;

static void* Careful(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
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
