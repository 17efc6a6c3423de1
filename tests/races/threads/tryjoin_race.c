// pthread_tryjoin_np that says "not yet" orders nothing.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <errno.h>
#include <semaphore.h>

#include "race.h"

int value;
sem_t leave;

static void* Writer(void* argument) {
  value = 1;  // [a]
  sem_wait(&leave);
  return argument;
}

int main(void) {
  sem_init(&leave, 0, 0);
  const pthread_t writer = Start(Writer, NULL);
  Check(pthread_tryjoin_np(writer, NULL) == EBUSY);
  value = 2;  // [b]
  sem_post(&leave);
  Join(writer);
  return Done();
}
