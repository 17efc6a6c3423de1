// Drepper's mutex of a futex with three states.
// CLEAN
// TAGS fast
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

static int value;
static int Futex(atomic_int* word, int operation, int argument) {
  return (int)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, argument, NULL, NULL, 0);
}

static atomic_int state; /* 0 free, 1 taken, 2 taken and waited for */

static void Lock(void) {
  int seen = 0;
  if (atomic_compare_exchange_strong(&state, &seen, 1)) return;
  if (seen != 2) seen = atomic_exchange(&state, 2);
  while (seen != 0) {
    Futex(&state, FUTEX_WAIT, 2);
    seen = atomic_exchange(&state, 2);
  }
}

static void Unlock(void) {
  if (atomic_fetch_sub(&state, 1) != 1) {
    atomic_store(&state, 0);
    Futex(&state, FUTEX_WAKE, 1);
  }
}

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    Lock();
    value++;
    Unlock();
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 10 ? Done() : 1;
}
