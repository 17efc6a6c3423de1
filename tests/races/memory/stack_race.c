// A variable on the stack of main, given to two threads.
// RACE write-write stack:local a b
// MAY-MISS shared: each place runs once
#include "race.h"

static void* First(void* argument) {
  *(int*)argument = 1;  // [a]
  return NULL;
}

static void* Second(void* argument) {
  *(int*)argument = 2;  // [b]
  return NULL;
}

int main(void) {
  int local = 0;
  const pthread_t first = Start(First, &local);
  const pthread_t second = Start(Second, &local);
  Join(first);
  Join(second);
  return Done();
}
