// A wait that timed out tells nothing of what the other thread does outside the mutex.
// RACE write-write global:value+0 late early
#include <errno.h>
#include <time.h>

#include "race.h"

int value, never;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Works(void* argument) {
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  value = 1;  // [early]
  return argument;
}

static void* Waits(void* argument) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_nsec += 50000000;
  if (deadline.tv_nsec >= 1000000000) {
    deadline.tv_nsec -= 1000000000;
    deadline.tv_sec++;
  }
  pthread_mutex_lock(&mutex);
  while (!never && pthread_cond_timedwait(&condition, &mutex, &deadline) != ETIMEDOUT) {
  }
  pthread_mutex_unlock(&mutex);
  value = 2;  // [late]
  return argument;
}

int main(void) {
  RunTwo(Waits, Works);
  return Done();
}
