// memcmp reads both blocks.
// RACE read-write global:right a b
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char left[100];
char right[100];

static void* First(void* argument) {
  Use(memcmp(left, right, Opaque(100)));  // [a]
  return argument;
}

static void* Second(void* argument) {
  right[60] = 0;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
