// A word across two pages, and a byte on the second.
// RACE write-write global:bytes a b
// MAY-MISS shared: each place runs once
#include "race.h"

typedef unsigned long Unaligned __attribute__((aligned(1), may_alias));
char bytes[8192] __attribute__((aligned(4096)));

static void* First(void* argument) {
  *(Unaligned*)&bytes[4093] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  bytes[4100] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
