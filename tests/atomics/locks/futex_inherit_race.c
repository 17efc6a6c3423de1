// A lock by FUTEX_LOCK_PI: the kernel hands it over when there are waiters.
// ONE-OF any global:value a b
// ONE-OF any global:value b b
// MAY-MISS shared: who had the page first did so alone
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

static atomic_int word;
int value;

static void Lock(void) {
  int free = 0;
  if (atomic_compare_exchange_strong_explicit(&word, &free, ThreadId(), memory_order_acquire,
                                              memory_order_relaxed))
    return;
  Check(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
}

static void Unlock(void) {
  int mine = ThreadId();
  if (atomic_compare_exchange_strong_explicit(&word, &mine, 0, memory_order_release,
                                              memory_order_relaxed))
    return;
  Check(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
}

static void* Worker(void* argument) {
  for (int i = 0; i < 10; i++) {
    Lock();
    value++;  // [a]
    if (i % 3 == 0) usleep(500);
    Unlock();
  }
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
