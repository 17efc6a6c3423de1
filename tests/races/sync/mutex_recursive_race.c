// After the outer unlock of a recursive mutex nothing is held.
// RACE any global:counter a a
// MAY-MISS shared: the place runs once in each thread
#include "race.h"

int counter;
pthread_mutex_t mutex;

static void* Adder(void* argument) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&mutex);
  counter++;  // [a]
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &attributes);
  RunTwo(Adder, Adder);
  return Done();
}
