// Two threads' destructors change one counter.
// RACE any global:destroyed a a
// MAY-MISS shared: the place runs once in each thread
#include "race.h"

pthread_key_t key;
int destroyed;

static void Destroy(void* value) {
  Use(*(int*)value);
  destroyed++;  // [a]
}

static void* Worker(void* argument) {
  static int value = 1;
  Check(pthread_setspecific(key, &value) == 0);
  return argument;
}

int main(void) {
  Check(pthread_key_create(&key, Destroy) == 0);
  RunTwo(Worker, Worker);
  return Done();
}
