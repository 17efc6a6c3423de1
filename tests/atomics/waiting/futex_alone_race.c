// Waiting for a word that is changed plainly: the kernel looks at it, but nothing orders the
// threads.
// RACE read-write global:ready a b
// ALSO any c d
// LIMIT nodebug: a word for which a loop waits is taken for atomic
// MAY-MISS shared: each place runs once in a thread
#include <linux/futex.h>

#include "race.h"

volatile int ready;
int value;

static void* Gives(void* argument) {
  value = 1;  // [c]
  ready = 1;  // [a]
  syscall(SYS_futex, &ready, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  return argument;
}

static void* Takes(void* argument) {
  while (!ready) {  // [b]
    syscall(SYS_futex, &ready, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  }
  value = 2;  // [d]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
