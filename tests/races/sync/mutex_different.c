// Both threads hold a mutex, but not the same one.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
// LOCKS a 1
// LOCKS b 1
#include "race.h"

int counter;
pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;

static void* First(void* argument) {
  pthread_mutex_lock(&one);
  counter++;  // [a]
  pthread_mutex_unlock(&one);
  return argument;
}

static void* Second(void* argument) {
  pthread_mutex_lock(&other);
  counter++;  // [b]
  pthread_mutex_unlock(&other);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
