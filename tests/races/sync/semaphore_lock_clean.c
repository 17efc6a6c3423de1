// A semaphore of one used as a lock.
// CLEAN
#include <semaphore.h>

#include "race.h"

int counter;
sem_t one;

static void* Adder(void* argument) {
  for (int i = 0; i < 5; i++) {
    sem_wait(&one);
    counter++;
    sem_post(&one);
  }
  return argument;
}

int main(void) {
  sem_init(&one, 0, 1);
  RunTwo(Adder, Adder);
  return counter == 10 ? Done() : 1;
}
