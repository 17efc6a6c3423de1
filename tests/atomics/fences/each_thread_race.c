// The fence comes after the store, and another thread has run it before: that helps nobody else.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: on x86-64 the wrong order compiles to the same instructions as the right one
#include <stdatomic.h>

#include "race.h"

int value;
static atomic_int ready;

static void Publish(int stage) {
  atomic_store_explicit(&ready, stage, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

static void* Gives(void* argument) {
  value = 1;  // [a]
  Publish(2);
  return argument;
}

static void* Takes(void* argument) {
  while (atomic_load_explicit(&ready, memory_order_acquire) != 2) usleep(100);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  Publish(1);
  RunTwo(Gives, Takes);
  return Done();
}
