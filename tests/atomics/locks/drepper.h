// Drepper's mutex of a futex with three states.
#include "futex.h"

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
