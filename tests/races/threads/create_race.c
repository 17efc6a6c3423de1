// What the creator writes after the creation is not ordered with the thread.
// RACE read-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;

static void* Reader(void* argument) {
  Use(value);  // [a]
  return argument;
}

int main(void) {
  const pthread_t reader = Start(Reader, NULL);
  value = 1;  // [b]
  Join(reader);
  return Done();
}
