// A futex mutex as in Rust's library: it spins, then waits; given back by an exchange.
// CLEAN
#include "count_under_lock.h"
#include "futex.h"

static atomic_int state; /* 0 free, 1 taken, 2 taken and waited for */

static void Lock(void) {
  int expected = 0;
  if (atomic_compare_exchange_strong_explicit(&state, &expected, 1, memory_order_acquire,
                                              memory_order_relaxed)) {
    return;
  }
  for (int i = 0; i < 100; i++) {
    if (atomic_load_explicit(&state, memory_order_relaxed) != 1) break;
  }
  while (atomic_exchange_explicit(&state, 2, memory_order_acquire) != 0)
    Futex(&state, FUTEX_WAIT, 2);
}

static void Unlock(void) {
  if (atomic_exchange_explicit(&state, 0, memory_order_release) == 2) Futex(&state, FUTEX_WAKE, 1);
}

int main(void) { return CountUnderLock(); }
