// Java interface: memory that the collector takes back and gives out again.
// CLEAN
// TSAN-DIFFERS dlsym does not find the interface
#include "java.h"

long heap[32];

static void* First(void* argument) {
  heap[4] = 1;
  return argument;
}

static void* Second(void* argument) {
  heap[4] = 2;
  return argument;
}

int main(void) {
  JAVA_INIT(heap, sizeof(heap));
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  JAVA_FREE(&heap[0], sizeof(heap));
  const pthread_t other = RunToEnd(Second, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
