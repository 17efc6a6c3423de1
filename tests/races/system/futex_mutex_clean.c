// A mutex of the program's own: atomics order, futexes only wait.
// CLEAN
#include <linux/futex.h>

#include "race.h"

int counter;
int state;

static void Lock(void) {
  int expected = 0;
  if (__atomic_compare_exchange_n(&state, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    return;
  }
  while (__atomic_exchange_n(&state, 2, __ATOMIC_SEQ_CST) != 0) {
    syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
  }
}

static void Unlock(void) {
  if (__atomic_exchange_n(&state, 0, __ATOMIC_SEQ_CST) == 2) {
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

static void* Adder(void* argument) {
  for (int i = 0; i < 4; i++) {
    Lock();
    counter++;
    Unlock();
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 8 ? Done() : 1;
}
