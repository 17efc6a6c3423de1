// A queue lock: every waiter spins on a word of its own.
// CLEAN
#include <stdatomic.h>

#include "count_under_lock.h"

struct Waiter {
  _Atomic(struct Waiter*) next;
  atomic_int waits;
};
static _Atomic(struct Waiter*) tail;
static _Thread_local struct Waiter own;

static void Lock(void) {
  atomic_store_explicit(&own.next, NULL, memory_order_relaxed);
  atomic_store_explicit(&own.waits, 1, memory_order_relaxed);
  struct Waiter* const before = atomic_exchange(&tail, &own);
  if (before == NULL) return;
  atomic_store_explicit(&before->next, &own, memory_order_release);
  while (atomic_load_explicit(&own.waits, memory_order_acquire)) usleep(100);
}

static void Unlock(void) {
  struct Waiter* after = atomic_load_explicit(&own.next, memory_order_acquire);
  if (after == NULL) {
    struct Waiter* expected = &own;
    if (atomic_compare_exchange_strong(&tail, &expected, NULL)) return;
    while ((after = atomic_load_explicit(&own.next, memory_order_acquire)) == NULL) usleep(100);
  }
  atomic_store_explicit(&after->waits, 0, memory_order_release);
}

int main(void) { return CountUnderLock(); }
