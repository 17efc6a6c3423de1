// Java interface: a finalizer comes after all that was done, locked or not.
// CLEAN
// TSAN-DIFFERS dlsym does not find the interface
#include "java.h"

long heap[32];

static void* First(void* argument) {
  heap[4] = 1;
  return argument;
}

static void* Finalizer(void* argument) {
  JAVA_FINALIZE();
  heap[4] = 2;
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  const pthread_t other = RunToEnd(Finalizer, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
