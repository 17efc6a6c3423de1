// pthread_mutex_clocklock and pthread_mutex_timedlock with time enough exclude.
// CLEAN
// BUILD O0 O2 static
#include <time.h>

#include "race.h"

int value;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct timespec Later(clockid_t clock) {
  struct timespec deadline;
  Check(clock_gettime(clock, &deadline) == 0);
  deadline.tv_sec += 60;
  return deadline;
}

static void* ByMonotonic(void* argument) {
  const struct timespec deadline = Later(CLOCK_MONOTONIC);
  Check(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline) == 0);
  value++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* ByRealTime(void* argument) {
  const struct timespec deadline = Later(CLOCK_REALTIME);
  Check(pthread_mutex_timedlock(&mutex, &deadline) == 0);
  value++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  RunTwo(ByMonotonic, ByRealTime);
  return value == 2 ? Done() : 1;
}
