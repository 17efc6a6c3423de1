// Grandchild against grandparent; the thread between them orders neither.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;

static void* Inner(void* argument) {
  value = 1;  // [a]
  return argument;
}

static void* Outer(void* argument) {
  Join(Start(Inner, NULL));
  return argument;
}

int main(void) {
  const pthread_t outer = Start(Outer, NULL);
  value = 2;  // [b]
  Join(outer);
  return Done();
}
