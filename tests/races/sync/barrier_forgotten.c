// The wait between writing and reading is missing in both.
// RACE read-write global:elements a b
// MAY-MISS shared: each place runs once
#include "race.h"

int elements[2];
pthread_barrier_t barrier;

static void* First(void* argument) {
  elements[0] = 1;  // [a]
  pthread_barrier_wait(&barrier);
  return argument;
}

static void* Second(void* argument) {
  elements[1] = elements[0] + 1;  // [b]
  pthread_barrier_wait(&barrier);
  return argument;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  RunTwo(First, Second);
  return Done();
}
