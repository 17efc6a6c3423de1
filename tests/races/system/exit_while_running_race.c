// main returns while a thread still uses what an exit handler destroys.
// RACE any global:value a b
// MAY-MISS shared: each place runs once
#include <semaphore.h>

#include "race.h"

int value;
sem_t written;

static void AtExit(void) {
  value = 2;  // [b]
  sem_wait(&written);
}

static void* Writer(void* argument) {
  value = 1;  // [a]
  sem_post(&written);
  for (;;) pause();
  return argument;
}

int main(void) {
  sem_init(&written, 0, 0);
  atexit(AtExit);
  Start(Writer, NULL);
  return Done();
}
