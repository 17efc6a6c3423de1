// The relaxed load is in a function of the program's own that is inlined.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: on x86-64 the wrong order compiles to the same instructions as the right one
#include <stdatomic.h>

#include "race.h"

int value;
static atomic_int ready;

static inline int IsSet(atomic_int* flag) {
  return atomic_load_explicit(flag, memory_order_relaxed) == 1;
}

static void* Gives(void* argument) {
  value = 1;  // [a]
  atomic_store_explicit(&ready, 1, memory_order_release);
  return argument;
}

static void* Takes(void* argument) {
  while (!IsSet(&ready)) usleep(100);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
