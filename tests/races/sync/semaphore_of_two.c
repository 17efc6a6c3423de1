// A semaphore of two lets both in.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
#include <semaphore.h>

#include "race.h"

int counter;
sem_t two;
sem_t both;

static void MeetOther(void) {
  sem_post(&both);
  while (1) {
    int arrived;
    sem_getvalue(&both, &arrived);
    if (arrived == 2) break;
    usleep(1000);
  }
}

static void* First(void* argument) {
  sem_wait(&two);
  MeetOther();
  counter++;  // [a]
  sem_post(&two);
  return argument;
}

static void* Second(void* argument) {
  sem_wait(&two);
  MeetOther();
  counter++;  // [b]
  sem_post(&two);
  return argument;
}

int main(void) {
  sem_init(&two, 0, 2);
  sem_init(&both, 0, 0);
  RunTwo(First, Second);
  return Done();
}
