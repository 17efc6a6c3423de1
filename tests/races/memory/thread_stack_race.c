// A variable on the stack of a thread, which its owner and another thread write.
// RACE write-write stack:local a b
// MAY-MISS shared: each place runs once
#include "race.h"

static void* Inner(void* argument) {
  *(int*)argument = 1;  // [a]
  return NULL;
}

static void* Outer(void* argument) {
  volatile int local = 0;
  const pthread_t inner = Start(Inner, (void*)&local);
  local = 2;  // [b]
  Join(inner);
  return argument;
}

int main(void) {
  Join(Start(Outer, NULL));
  return Done();
}
