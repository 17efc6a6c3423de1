// The same in C: two statements, one instruction.
// CLEAN
// LIMIT nodebug: the store is a plain mov
#include "race.h"

static int value;
static int ready;

__attribute__((noinline)) static int Get(const int* flag, int acquires) {
  int result;
  if (acquires)
    result = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
  else
    result = __atomic_load_n(flag, __ATOMIC_RELAXED);
  return result;
}

static void* Gives(void* argument) {
  value = 1;
  __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  return argument;
}

static void* Takes(void* argument) {
  while (!Get(&ready, argument == NULL)) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  Use(Get(&ready, 0));
  return value == 2 ? Done() : 1;
}
