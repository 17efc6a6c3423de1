// Java interface: an object moves with the lock in it, and its old place goes to another one.
// CLEAN
// TSAN-DIFFERS dlsym does not find the interface
#include "java.h"

long heap[32];

static void* First(void* argument) {
  JAVA_LOCK(&heap[4]);
  heap[5] = 1;
  JAVA_UNLOCK(&heap[4]);
  return argument;
}

static void* Second(void* argument) {
  JAVA_LOCK(&heap[3]);
  heap[4]++;
  JAVA_UNLOCK(&heap[3]);
  return argument;
}

static void* Third(void* argument) {
  heap[5] = 3;
  return argument;
}

int main(void) {
  JAVA_INIT(heap, sizeof(heap));
  JAVA_ALLOC(&heap[4], 16);
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  JAVA_MOVE(&heap[4], &heap[3], 16);
  JAVA_ALLOC(&heap[5], 16);
  const pthread_t two = RunToEnd(Second, NULL);
  const pthread_t three = RunToEnd(Third, NULL);
  Join(one);
  Join(two);
  Join(three);
  EndIdle(idle);
  return Done();
}
