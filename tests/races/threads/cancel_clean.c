// A cancelled thread's clean-up handler is ordered before the join.
// CLEAN
#include "race.h"

int value;

static void CleanUp(void* argument) {
  (void)argument;
  value = 1;
}

static void* Sleeper(void* argument) {
  pthread_cleanup_push(CleanUp, NULL);
  for (;;) pause();
  pthread_cleanup_pop(0);
  return argument;
}

int main(void) {
  const pthread_t sleeper = Start(Sleeper, NULL);
  Check(pthread_cancel(sleeper) == 0);
  void* result;
  Check(pthread_join(sleeper, &result) == 0 && result == PTHREAD_CANCELED);
  Use(value);
  return Done();
}
