// A spin lock that looks before it tries.
// CLEAN
#include <stdatomic.h>

#include "count_under_lock.h"

static atomic_int taken;

static void Lock(void) {
  for (;;) {
    while (atomic_load_explicit(&taken, memory_order_relaxed)) usleep(100);
    if (!atomic_exchange_explicit(&taken, 1, memory_order_acquire)) return;
  }
}

static void Unlock(void) { atomic_store_explicit(&taken, 0, memory_order_release); }

int main(void) { return CountUnderLock(); }
