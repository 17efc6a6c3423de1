// Drepper's mutex, and a write after it was given back.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
#include "drepper.h"

int value;

static void* Works(void* argument) {
  Lock();
  Unlock();
  value = 1;  // [a]
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return Done();
}
