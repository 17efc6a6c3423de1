// Two threads that spin on a lock word each.
// RACE any global:counter a a
// MAY-MISS shared: the place runs once in each thread
#include "race.h"

int counter;
int locks[2];

static void* Adder(void* argument) {
  int* lock = (int*)argument;
  while (__atomic_exchange_n(lock, 1, __ATOMIC_SEQ_CST) != 0) usleep(100);
  counter++;  // [a]
  __atomic_exchange_n(lock, 0, __ATOMIC_SEQ_CST);
  return NULL;
}

int main(void) {
  const pthread_t first = Start(Adder, &locks[0]);
  const pthread_t second = Start(Adder, &locks[1]);
  Join(first);
  Join(second);
  return Done();
}
