// The older builtins: a lock by test-and-set, given back by lock_release.
// CLEAN
#include "race.h"

static int lock;
static int value;

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    while (__sync_lock_test_and_set(&lock, 1)) usleep(100);
    value++;
    __sync_lock_release(&lock);
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 10 ? Done() : 1;
}
