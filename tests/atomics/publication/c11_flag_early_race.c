// The flag is set before the value is written.
// RACE write-write global:value a b
// TAGS fast
// MAY-MISS shared: each place runs once
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the flag is reported besides
#include <stdatomic.h>

#include "race.h"

int value;
static atomic_int ready;

static void* Gives(void* argument) {
  atomic_store_explicit(&ready, 1, memory_order_release);
  value = 1;  // [a]
  return argument;
}

static void* Takes(void* argument) {
  while (!atomic_load_explicit(&ready, memory_order_acquire)) usleep(100);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
