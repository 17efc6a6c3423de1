// GCC's builtin store on a plain int: a mov at a line of the program, like any assignment, but for
// the line's text.
// CLEAN
#include "race.h"

static int value;
static int ready;

static void* Gives(void* argument) {
  value = 1;
  __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
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
