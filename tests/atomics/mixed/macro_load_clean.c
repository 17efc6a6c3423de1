// A plain word that is loaded by a macro, and changed by atomic instructions only.
// CLEAN
#include "race.h"

#define READ(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define IS_SET(word) (READ(word) != 0)

static int value;
static int ready;

static void* Gives(void* argument) {
  value = 1;
  __atomic_fetch_add(&ready, 1, __ATOMIC_RELEASE);
  return argument;
}

static void* Takes(void* argument) {
  while (!IS_SET(ready)) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
