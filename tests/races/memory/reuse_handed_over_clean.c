// Allocated by one thread, freed by another after a hand-over, allocated again by a third.
// CLEAN
#include <malloc.h>
#include <semaphore.h>

#include "race.h"

int* block;
sem_t ready;

static void* Maker(void* argument) {
  block = (int*)malloc(3000);
  block[7] = 1;
  sem_post(&ready);
  return argument;
}

static void* Breaker(void* argument) {
  sem_wait(&ready);
  block[7]++;
  free(block);
  return argument;
}

static void* Third(void* argument) {
  for (int i = 0; i < 4; i++) {
    int* mine = (int*)malloc(3000);
    mine[7] = i;
    free(mine);
    usleep(500);
  }
  return argument;
}

int main(void) {
  mallopt(M_ARENA_MAX, 1);
  sem_init(&ready, 0, 0);
  const pthread_t third = Start(Third, NULL);
  RunTwo(Maker, Breaker);
  Join(third);
  return Done();
}
