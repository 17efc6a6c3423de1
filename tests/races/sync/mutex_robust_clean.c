// A robust mutex whose holder has died is handed on with EOWNERDEAD.
// CLEAN
#include <errno.h>

#include "race.h"

int value;
pthread_mutex_t mutex;
pid_t holder;

static void* Dying(void* argument) {
  Check(pthread_mutex_lock(&mutex) == 0);
  value = 1;
  __atomic_store_n(&holder, ThreadId(), __ATOMIC_SEQ_CST);
  return argument;
}

static void* Heir(void* argument) {
  Check(pthread_mutex_lock(&mutex) == EOWNERDEAD);
  value++;
  pthread_mutex_consistent(&mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  const pthread_t dying = Start(Dying, NULL);
  pid_t id;
  while ((id = __atomic_load_n(&holder, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  Join(Start(Heir, NULL));
  Join(dying);
  return value == 2 ? Done() : 1;
}
