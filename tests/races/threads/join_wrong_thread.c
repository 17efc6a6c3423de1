// Joining one thread says nothing about another.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;

static void* Writer(void* argument) {
  value = 1;  // [a]
  return argument;
}

static void* Idle(void* argument) { return argument; }

int main(void) {
  const pthread_t writer = Start(Writer, NULL);
  Join(Start(Idle, NULL));
  value = 2;  // [b]
  Join(writer);
  return Done();
}
