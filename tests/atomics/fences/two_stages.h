// What programs share that give a value away in two stages: the reader waits for the second one.
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_int ready;

static void* Takes(void* argument) {
  while (atomic_load_explicit(&ready, memory_order_acquire) != 2) usleep(100);
  value++;
  return argument;
}

// `gives` sets the value to 1.
static int RunStages(void* (*gives)(void*)) {
  RunTwo(gives, Takes);
  return value == 2 ? Done() : 1;
}
