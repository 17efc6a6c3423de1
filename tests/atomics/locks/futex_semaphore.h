// A semaphore made of a counter and a futex, as a lock.
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

typedef struct {
  _Atomic unsigned count;
  _Atomic unsigned waiters;
} Semaphore;

static Semaphore semaphore = {1, 0};

static void Post(Semaphore* s) {
  atomic_fetch_add_explicit(&s->count, 1, memory_order_release);
  if (atomic_load_explicit(&s->waiters, memory_order_relaxed) != 0)
    syscall(SYS_futex, &s->count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void Wait(Semaphore* s) {
  for (;;) {
    unsigned count = atomic_load_explicit(&s->count, memory_order_relaxed);
    while (count != 0) {
      if (atomic_compare_exchange_weak_explicit(&s->count, &count, count - 1, memory_order_acquire,
                                                memory_order_relaxed))
        return;
    }
    atomic_fetch_add_explicit(&s->waiters, 1, memory_order_relaxed);
    struct timespec soon = {0, 1000000};
    syscall(SYS_futex, &s->count, FUTEX_WAIT_PRIVATE, 0, &soon, NULL, 0);
    atomic_fetch_sub_explicit(&s->waiters, 1, memory_order_relaxed);
  }
}

static void Lock(void) { Wait(&semaphore); }
static void Unlock(void) { Post(&semaphore); }
