// Timed and clock variants of a reader-writer lock, with time enough.
// CLEAN
#include <time.h>

#include "race.h"

int value;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Writes(void* argument) {
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += 60;
  Check(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &deadline) == 0);
  value++;
  pthread_rwlock_unlock(&lock);
  return argument;
}

static void* Reads(void* argument) {
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += 60;
  Check(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &deadline) == 0);
  Use(value);
  pthread_rwlock_unlock(&lock);
  return argument;
}

int main(void) {
  RunTwo(Writes, Reads);
  return Done();
}
