// The initial thread leaves; the handlers of exit run when the last thread has ended, in it, after
// all the others.
// CLEAN
#include <semaphore.h>

#include "race.h"

enum { kMuchLater = 100000 };  // microseconds: one that was started before has ended

int by_initial, by_detached, by_last;

static void Handler(void) {
  by_initial++;
  by_detached++;
  by_last++;
}

static void LateHandler(void) { by_detached++; }

static void* Detached(void* argument) {
  by_detached = 1;
  sem_post(argument);
  by_detached++;
  return NULL;
}

static void* Last(void* argument) {
  usleep(kMuchLater);
  atexit(LateHandler);
  by_last = 1;
  return argument;
}

int main(void) {
  static sem_t started;
  atexit(Handler);
  sem_init(&started, 0, 0);
  pthread_detach(Start(Detached, &started));
  sem_wait(&started);
  Start(Last, NULL);
  puts("done");
  by_initial = 1;
  pthread_exit(NULL);
}
