// Unaligned words side by side.
// CLEAN
#include "race.h"

typedef unsigned long Unaligned __attribute__((aligned(1), may_alias));
char bytes[32] __attribute__((aligned(16)));

static void* First(void* argument) {
  *(Unaligned*)&bytes[3] = 1;
  return argument;
}

static void* Second(void* argument) {
  *(Unaligned*)&bytes[11] = 2;
  bytes[2] = 1;
  bytes[19] = 1;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
