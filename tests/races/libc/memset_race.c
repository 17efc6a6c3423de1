// memset against memset.
// RACE write-write global:block a b
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char block[500];

static void* First(void* argument) {
  memset(block, 1, Opaque(300));  // [a]
  return argument;
}

static void* Second(void* argument) {
  memset(block + 299, 2, Opaque(200));  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
