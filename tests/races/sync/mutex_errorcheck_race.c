// An unlock that fails, because another thread holds the mutex, releases nothing.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
#include <errno.h>

#include "race.h"

int counter;
pthread_mutex_t mutex;

static void* Intruder(void* argument) {
  counter++;  // [a]
  Check(pthread_mutex_unlock(&mutex) == EPERM);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutex_lock(&mutex);
  const pthread_t intruder = Start(Intruder, NULL);
  counter++;  // [b]
  Join(intruder);
  pthread_mutex_unlock(&mutex);
  return Done();
}
