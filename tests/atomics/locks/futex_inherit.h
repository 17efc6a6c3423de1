// A lock by FUTEX_LOCK_PI: the kernel hands it over when there are waiters.
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

static atomic_int word;

static void Lock(void) {
  int free = 0;
  if (atomic_compare_exchange_strong_explicit(&word, &free, ThreadId(), memory_order_acquire,
                                              memory_order_relaxed))
    return;
  Check(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
}

static void Unlock(void) {
  int mine = ThreadId();
  usleep(200);  // so that there are waiters
  if (atomic_compare_exchange_strong_explicit(&word, &mine, 0, memory_order_release,
                                              memory_order_relaxed))
    return;
  Check(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
}
