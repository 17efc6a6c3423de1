// A ticket lock.
// CLEAN
// TAGS fast
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_uint next, serving;

static void Lock(void) {
  const unsigned own = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
  while (atomic_load_explicit(&serving, memory_order_acquire) != own) usleep(100);
}

static void Unlock(void) {
  const unsigned now = atomic_load_explicit(&serving, memory_order_relaxed);
  atomic_store_explicit(&serving, now + 1, memory_order_release);
}

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    Lock();
    value++;
    Unlock();
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 10 ? Done() : 1;
}
