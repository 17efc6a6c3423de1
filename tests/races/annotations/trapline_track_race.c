// client.h: memory that is tracked again.
// RACE write-write global:values a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "race.h"
#include "trapline/client.h"

int values[2];
pthread_barrier_t both;

static void* First(void* argument) {
  values[0] = 1;
  pthread_barrier_wait(&both);
  pthread_barrier_wait(&both);
  values[0] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  values[0] = 2;
  pthread_barrier_wait(&both);
  trapline_track(values, sizeof(values));
  pthread_barrier_wait(&both);
  values[0] = 2;  // [b]
  return argument;
}

int main(void) {
  trapline_untrack(values, sizeof(values));
  pthread_barrier_init(&both, NULL, 2);
  RunTwo(First, Second);
  return Done();
}
