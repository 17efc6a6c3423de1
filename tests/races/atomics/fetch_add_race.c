// The counter is atomic; what is written after it is not.
// RACE write-write global:value a a
// MAY-MISS shared: the place runs once in each thread
#include "race.h"

int value;
int arrived;

static void* Worker(void* argument) {
  __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
