// A mutex with priority inheritance that is robust; its owner dies.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <errno.h>

#include "race.h"

static pthread_mutex_t mutex;
int value;

static void* Dies(void* argument) {
  Check(pthread_mutex_lock(&mutex) == 0);
  value = 1;  // [a]
  return argument;
}

static void* Mends(void* argument) {
  value = 7;  // [b]
  int result;
  while ((result = pthread_mutex_lock(&mutex)) == 0) {
    pthread_mutex_unlock(&mutex);
    usleep(100);
  }
  Check(result == EOWNERDEAD);
  value++;
  pthread_mutex_consistent(&mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  Check(pthread_mutex_init(&mutex, &attributes) == 0);
  RunTwo(Dies, Mends);
  return Done();
}
