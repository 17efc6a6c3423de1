// A condition awaited by pthread_cond_clockwait in a loop.
// CLEAN
// BUILD O0 O2 static
#include <time.h>

#include "race.h"

int value, ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Sets(void* argument) {
  value = 1;
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Waits(void* argument) {
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += 60;
  pthread_mutex_lock(&mutex);
  while (!ready) pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &deadline);
  pthread_mutex_unlock(&mutex);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Sets, Waits);
  return value == 2 ? Done() : 1;
}
