// The value is touched after the lock was given back.
// RACE write-write global:value a a
// TAGS fast
// MAY-MISS shared: each place runs once
#include "race.h"

static int lock;
int value;

static void* Works(void* argument) {
  while (__sync_lock_test_and_set(&lock, 1)) usleep(100);
  __sync_lock_release(&lock);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return Done();
}
