// A volatile flag is no atomic: it races, and so does what it guards.
// RACE read-write global:ready a b
// ALSO any c d
// TAGS fast
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: a loop that does nothing else waits for it, as for an atomic one; the instructions are the same
#include "race.h"

int value;
volatile int ready;

static void* Gives(void* argument) {
  value = 1;  // [c]
  ready = 1;  // [a]
  return argument;
}

static void* Takes(void* argument) {
  while (!ready) usleep(100);  // [b]
  value = 2;                   // [d]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
