// __sync_lock_test_and_set and __sync_lock_release.
// CLEAN
#include "race.h"

static char lock;
int value;

static void* Worker(void* argument) {
  for (int i = 0; i < 10; i++) {
    while (__sync_lock_test_and_set(&lock, 1)) usleep(10);
    value++;
    __sync_lock_release(&lock);
  }
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
