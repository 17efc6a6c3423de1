// A lock that the kernel gives back, by the word which FUTEX_WAKE_OP changes.
// CLEAN
#include <linux/futex.h>

#include "race.h"

int value;
static int lock, nobody;

static void Lock(void) {
  int expected = 0;
  while (!__atomic_compare_exchange_n(&lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    syscall(SYS_futex, &lock, FUTEX_WAIT, 1, NULL);
    expected = 0;
  }
}

static void Unlock(void) {
  const unsigned set_to_zero = FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_GT, 0);
  syscall(SYS_futex, &nobody, FUTEX_WAKE_OP, 1, (void*)1, &lock, set_to_zero);
}

static void* Worker(void* argument) {
  for (int i = 0; i < 50; i++) {
    Lock();
    value++;
    Unlock();
    if (i % 10 == 0) sched_yield();
  }
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return value == 100 ? Done() : 1;
}
