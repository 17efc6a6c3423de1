// pthread_once orders what it ran, and nothing that its callers do afterwards.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
pthread_once_t once = PTHREAD_ONCE_INIT;

static void Initialise(void) { value = 1; }

static void* First(void* argument) {
  pthread_once(&once, Initialise);
  value = 2;  // [a]
  return argument;
}

static void* Second(void* argument) {
  pthread_once(&once, Initialise);
  value = 3;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
