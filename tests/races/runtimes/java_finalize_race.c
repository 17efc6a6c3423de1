// Java interface: what is done after a finalizer has begun races with it.
// RACE write-write global:heap+32 a b
// TSAN-DIFFERS dlsym does not find the interface
// MAY-MISS shared: each place runs once
#include "java.h"

long heap[32];
static volatile int step;

static void* First(void* argument) {
  heap[4] = 1;
  step = 1;
  while (step != 2) usleep(1000);
  heap[4] = 1;  // [a]
  return argument;
}

static void* Finalizer(void* argument) {
  while (step != 1) usleep(1000);
  JAVA_FINALIZE();
  step = 2;
  return argument;
}

static void* Last(void* argument) {
  heap[4] = 2;  // [b]
  return argument;
}

int main(void) {
  trapline_untrack(&step, sizeof(step));
  const pthread_t idle = StartIdle();
  const pthread_t finalizer = Start(Finalizer, NULL);
  const pthread_t one = RunToEnd(First, NULL);
  const pthread_t other = RunToEnd(Last, NULL);
  Join(finalizer);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
