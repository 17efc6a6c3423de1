// GCC's builtins on a plain int: handed over by exchange and compare-and-swap.
// CLEAN
// LIMIT clang-O2-nodebug: nobody reads what was exchanged: clang stores by a plain mov
// TAGS fast
#include "race.h"

static int value;
static int ready;

static void* Gives(void* argument) {
  value = 1;
  __atomic_exchange_n(&ready, 1, __ATOMIC_RELEASE);
  return argument;
}

static void* Takes(void* argument) {
  int expected = 1;
  while (
      !__atomic_compare_exchange_n(&ready, &expected, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    expected = 1;
    usleep(100);
  }
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
