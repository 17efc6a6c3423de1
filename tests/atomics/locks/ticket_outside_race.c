// A ticket lock, and a write after it was given back.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the lock is reported besides
#include <stdatomic.h>

#include "race.h"

int value;
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
  for (int i = 0; i < 1; i++) {
    Lock();
    Unlock();
    value = 1;  // [a]
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return Done();
}
