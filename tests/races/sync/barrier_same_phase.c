// Both threads write in the same phase.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it takes the next round of a barrier for this one
#include "race.h"

int value;
pthread_barrier_t barrier;

static void* First(void* argument) {
  pthread_barrier_wait(&barrier);
  value = 1;  // [a]
  pthread_barrier_wait(&barrier);
  return argument;
}

static void* Second(void* argument) {
  pthread_barrier_wait(&barrier);
  value = 2;  // [b]
  pthread_barrier_wait(&barrier);
  return argument;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  RunTwo(First, Second);
  return Done();
}
