// memmove over itself.
// RACE any global:block a b
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char block[500];

static void* First(void* argument) {
  memmove(block + 1, block, Opaque(200));  // [a]
  return argument;
}

static void* Second(void* argument) {
  block[200] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
