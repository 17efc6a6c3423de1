// The fence comes after the store, and before that of the next call, which publishes what was there
// before.
// CLEAN
// LIMIT nodebug: the store is a plain mov
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_int ready;

static void Publish(int stage) {
  atomic_store_explicit(&ready, stage, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

static void* Gives(void* argument) {
  value = 1;
  Publish(1);
  Publish(2);
  return argument;
}

static void* Takes(void* argument) {
  while (atomic_load_explicit(&ready, memory_order_acquire) != 2) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
