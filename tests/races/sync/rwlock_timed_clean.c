// The timed and try variants of both sides.
// CLEAN
#include <time.h>

#include "race.h"

int value;
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Reader(void* argument) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  Check(pthread_rwlock_timedrdlock(&lock, &end) == 0);
  Use(value);
  pthread_rwlock_unlock(&lock);
  while (pthread_rwlock_tryrdlock(&lock) != 0) usleep(1000);
  Use(value);
  pthread_rwlock_unlock(&lock);
  return argument;
}

static void* Writer(void* argument) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  Check(pthread_rwlock_timedwrlock(&lock, &end) == 0);
  value++;
  pthread_rwlock_unlock(&lock);
  return argument;
}

int main(void) {
  RunTwo(Reader, Writer);
  return Done();
}
