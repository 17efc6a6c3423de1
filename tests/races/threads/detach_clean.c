// A detached thread hands its result over by a semaphore.
// CLEAN
#include <semaphore.h>

#include "race.h"

int value;
sem_t ready;

static void* Writer(void* argument) {
  value = 1;
  sem_post(&ready);
  return argument;
}

int main(void) {
  sem_init(&ready, 0, 0);
  const pthread_t thread = Start(Writer, NULL);
  pthread_detach(thread);
  Check(sem_wait(&ready) == 0);
  value++;
  return value == 2 ? Done() : 1;
}
