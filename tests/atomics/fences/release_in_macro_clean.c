// The release fence stands in a macro of a header that leaves no other trace.
// CLEAN
#include "publish.h"
#include "race.h"

static int value;
static int ready;

static void* Gives(void* argument) {
  value = 1;
  PUBLISH();
  __atomic_store_n(&ready, 1, __ATOMIC_RELAXED);
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
