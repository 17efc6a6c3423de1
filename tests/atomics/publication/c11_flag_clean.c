// A value handed over by a flag: release store, acquire load.
// CLEAN
// TAGS fast
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_int ready;

static void* Gives(void* argument) {
  value = 1;
  atomic_store_explicit(&ready, 1, memory_order_release);
  return argument;
}

static void* Takes(void* argument) {
  while (!atomic_load_explicit(&ready, memory_order_acquire)) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
