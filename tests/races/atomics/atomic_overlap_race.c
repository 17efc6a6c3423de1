// A plain byte store into a word that another thread changes atomically.
// RACE atomic-plain global:word a b
// MAY-MISS shared: each place runs once
#include "race.h"

union {
  int whole;
  char bytes[4];
} word;

static void* Careful(void* argument) {
  __atomic_add_fetch(&word.whole, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Careless(void* argument) {
  word.bytes[3] = 1;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Careful, Careless);
  return Done();
}
