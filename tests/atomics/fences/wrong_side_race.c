// The release fence comes after the store that it should come before.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: on x86-64 the wrong order compiles to the same instructions as the right one
#include <stdatomic.h>

#include "race.h"

int value;
static atomic_int ready;

static void* Gives(void* argument) {
  value = 1;  // [a]
  atomic_store_explicit(&ready, 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  return argument;
}

static void* Takes(void* argument) {
  while (!atomic_load_explicit(&ready, memory_order_relaxed)) usleep(100);
  atomic_thread_fence(memory_order_acquire);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
