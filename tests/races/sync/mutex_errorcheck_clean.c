// Errorcheck mutexes refuse to be locked twice, and still order.
// CLEAN
#include <errno.h>

#include "race.h"

int counter;
pthread_mutex_t mutex;

static void* Adder(void* argument) {
  Check(pthread_mutex_unlock(&mutex) == EPERM);
  pthread_mutex_lock(&mutex);
  Check(pthread_mutex_lock(&mutex) == EDEADLK);
  counter++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &attributes);
  RunTwo(Adder, Adder);
  return counter == 2 ? Done() : 1;
}
