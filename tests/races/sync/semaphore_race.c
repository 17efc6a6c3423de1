// The value is written after the post that announces it.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <semaphore.h>

#include "race.h"

int value;
sem_t ready;

static void* Sender(void* argument) {
  sem_post(&ready);
  value = 1;  // [a]
  return argument;
}

static void* Receiver(void* argument) {
  sem_wait(&ready);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  sem_init(&ready, 0, 0);
  RunTwo(Sender, Receiver);
  return Done();
}
