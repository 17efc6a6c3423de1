// Two unaligned words that overlap in one byte.
// RACE write-write global:bytes a b
// MAY-MISS shared: each place runs once
#include "race.h"

typedef unsigned long Unaligned __attribute__((aligned(1), may_alias));
char bytes[32] __attribute__((aligned(16)));

static void* First(void* argument) {
  *(Unaligned*)&bytes[3] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  *(Unaligned*)&bytes[10] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
