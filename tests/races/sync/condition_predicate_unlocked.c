// The predicate is changed without the mutex; the waiter looks at it under the mutex.
// RACE read-write global:ready a b
// MAY-MISS shared: the waiter may look only once
#include <time.h>

#include "race.h"

int ready;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Sender(void* argument) {
  ready = 1;  // [a]
  pthread_cond_signal(&condition);
  return argument;
}

static void* Receiver(void* argument) {
  pthread_mutex_lock(&mutex);
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_nsec = 0;
  Use(ready);  // [b]
  pthread_cond_timedwait(&condition, &mutex, &soon);
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return Done();
}
