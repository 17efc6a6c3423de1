// pthread_mutex_timedlock and pthread_mutex_clocklock order when they succeed.
// CLEAN
// TSAN-DIFFERS it does not know the clock variants
#include <time.h>

#include "race.h"

int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct timespec In20s(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_sec += 20;
  return time;
}

static void* First(void* argument) {
  const struct timespec end = In20s(CLOCK_REALTIME);
  Check(pthread_mutex_timedlock(&mutex, &end) == 0);
  counter++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Second(void* argument) {
  const struct timespec end = In20s(CLOCK_MONOTONIC);
  Check(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &end) == 0);
  counter++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return counter == 2 ? Done() : 1;
}
