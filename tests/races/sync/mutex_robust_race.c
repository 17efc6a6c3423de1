// The heir of a robust mutex writes before it asks for it.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <errno.h>

#include "race.h"

int value;
pthread_mutex_t mutex;
pid_t holder;

static void* Dying(void* argument) {
  Check(pthread_mutex_lock(&mutex) == 0);
  __atomic_store_n(&holder, ThreadId(), __ATOMIC_SEQ_CST);
  value = 1;  // [a]
  return argument;
}

static void* Heir(void* argument) {
  value = 2;  // [b]
  pid_t id;
  while ((id = __atomic_load_n(&holder, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  Check(pthread_mutex_lock(&mutex) == EOWNERDEAD);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  RunTwo(Heir, Dying);
  return Done();
}
