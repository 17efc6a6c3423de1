// Both threads have held the mutex, and write after they released it.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int counter;
int value;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void Count(void) {
  pthread_mutex_lock(&mutex);
  counter++;
  pthread_mutex_unlock(&mutex);
}

static void* First(void* argument) {
  Count();
  value = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  Count();
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
