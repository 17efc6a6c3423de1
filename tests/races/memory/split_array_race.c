// Two threads split an array, and their parts overlap by one element.
// RACE any global:array+128 a a
// MAY-MISS shared: every element is used once by a thread
#include "race.h"

int array[65];

static void* Worker(void* argument) {
  int* mine = (int*)argument;
  for (int i = 0; i < 33; i++) {
    *(volatile int*)&mine[i] += 1;  // [a]
  }
  return NULL;
}

int main(void) {
  const pthread_t first = Start(Worker, array);
  const pthread_t second = Start(Worker, array + 32);
  Join(first);
  Join(second);
  return Done();
}
