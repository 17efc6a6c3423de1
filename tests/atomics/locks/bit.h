// A lock in one bit of a word of flags, as kernels have it.
#include "race.h"

static unsigned long word;

static void Lock(void) {
  while (__atomic_fetch_or(&word, 1ul << 5, __ATOMIC_ACQUIRE) & (1ul << 5)) {
    while (__atomic_load_n(&word, __ATOMIC_RELAXED) & (1ul << 5)) usleep(10);
  }
}

static void Unlock(void) {
  __atomic_and_fetch(&word, ~(1ul << 5), __ATOMIC_RELEASE);
  __atomic_fetch_or(&word, 2, __ATOMIC_RELAXED);  // another flag, which needs no lock
}
