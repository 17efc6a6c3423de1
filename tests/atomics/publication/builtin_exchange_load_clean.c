// GCC's builtins on a plain int that is only ever written atomically: a load of it is taken for
// atomic.
// CLEAN
#include "race.h"

static int value;
static int ready;

static void* Gives(void* argument) {
  value = 1;
  __atomic_exchange_n(&ready, 1, __ATOMIC_SEQ_CST);
  return argument;
}

static void* Takes(void* argument) {
  while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
