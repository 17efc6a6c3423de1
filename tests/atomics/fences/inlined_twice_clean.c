// The same at two places, where optimising compilers make two stores of the one.
// CLEAN
// LIMIT nodebug: the store is a plain mov
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_int ready;

static inline void Publish(int stage) {
  atomic_store_explicit(&ready, stage, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

__attribute__((noinline)) static void Begin(void) {
  value = 1;
  Publish(1);
}

__attribute__((noinline)) static void End(int stage) { Publish(stage); }

static void* Gives(void* argument) {
  Begin();
  End(2);
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
