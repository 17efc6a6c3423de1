// __sync_lock_test_and_set and __sync_lock_release.
// ONE-OF any global:value a b
// ONE-OF any global:value b b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: what follows a lock given back by a plain mov may pass for a repeat of what came before
#include "race.h"

static char lock;
int value;

static void* Worker(void* argument) {
  for (int i = 0; i < 10; i++) {
    while (__sync_lock_test_and_set(&lock, 1)) usleep(10);
    value++;  // [a]
    __sync_lock_release(&lock);
    value++;  // [b]
  }
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
