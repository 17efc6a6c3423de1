// A ticket lock.
#include <stdatomic.h>

#include "race.h"

static atomic_uint next, serving;

static void Lock(void) {
  const unsigned own = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
  while (atomic_load_explicit(&serving, memory_order_acquire) != own) usleep(100);
}

static void Unlock(void) {
  const unsigned now = atomic_load_explicit(&serving, memory_order_relaxed);
  atomic_store_explicit(&serving, now + 1, memory_order_release);
}
