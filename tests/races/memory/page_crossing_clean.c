// A word across two pages, and the bytes around it.
// CLEAN
#include "race.h"

typedef unsigned long Unaligned __attribute__((aligned(1), may_alias));
char bytes[8192] __attribute__((aligned(4096)));

static void* First(void* argument) {
  *(Unaligned*)&bytes[4093] = 1;
  return argument;
}

static void* Second(void* argument) {
  bytes[4092] = 2;
  bytes[4101] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
