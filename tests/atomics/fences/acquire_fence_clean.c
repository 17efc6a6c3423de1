// A relaxed load and an acquire fence behind it, in a function of its own.
// CLEAN
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_int ready;

static void* Gives(void* argument) {
  value = 1;
  atomic_store_explicit(&ready, 1, memory_order_release);
  return argument;
}

static void AfterWait(void) { atomic_thread_fence(memory_order_acquire); }

static void* Takes(void* argument) {
  while (!atomic_load_explicit(&ready, memory_order_relaxed)) usleep(100);
  AfterWait();
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
