// A wake-up taken for the condition: no loop, and the flag is set without the mutex.
// RACE read-write global:ready+0 set look
// MAY-MISS shared: each place runs once
#include <time.h>

#include "race.h"

int ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Sets(void* argument) {
  ready = 1;  // [set]
  pthread_cond_broadcast(&condition);
  return argument;
}

static void* Looks(void* argument) {
  const struct timespec soon = {0, 0};
  pthread_mutex_lock(&mutex);
  if (!ready) pthread_cond_timedwait(&condition, &mutex, &soon);  // [look]
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  RunTwo(Sets, Looks);
  return Done();
}
