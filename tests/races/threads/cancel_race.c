// Between pthread_cancel and the join the clean-up handler runs when it likes.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <semaphore.h>

#include "race.h"

int value;
sem_t armed;

static void CleanUp(void* argument) {
  (void)argument;
  value = 1;  // [a]
}

static void* Sleeper(void* argument) {
  pthread_cleanup_push(CleanUp, NULL);
  sem_post(&armed);
  for (;;) pause();
  pthread_cleanup_pop(0);
  return argument;
}

int main(void) {
  sem_init(&armed, 0, 0);
  const pthread_t sleeper = Start(Sleeper, NULL);
  Check(sem_wait(&armed) == 0);
  Check(pthread_cancel(sleeper) == 0);
  value = 2;  // [b]
  Join(sleeper);
  return Done();
}
