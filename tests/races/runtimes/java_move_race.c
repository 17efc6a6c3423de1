// Java interface: an object moves between two accesses that race.
// RACE write-write global:heap+96 a b
// TSAN-DIFFERS dlsym does not find the interface
// MAY-MISS shared: each place runs once
#include <string.h>

#include "java.h"

long heap[32];

static void* First(void* argument) {
  heap[4] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  heap[12] = 2;  // [b]
  return argument;
}

int main(void) {
  JAVA_INIT(heap, sizeof(heap));
  JAVA_ALLOC(&heap[4], 16);
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  JAVA_MOVE(&heap[4], &heap[12], 16);
  const pthread_t other = RunToEnd(Second, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
