// A relaxed load takes in nothing of what the flag was stored with; the call spans several lines.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: on x86-64 the wrong order compiles to the same instructions as the right one
#include "race.h"

int value;
static int ready;

static void* Gives(void* argument) {
  value = 1;  // [a]
  __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  return argument;
}

static void* Takes(void* argument) {
  while (__atomic_load_n(  // __ATOMIC_ACQUIRE would do
             &ready, __ATOMIC_RELAXED) == 0) {
    usleep(100);
  }
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
