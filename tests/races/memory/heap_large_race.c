// A block that malloc maps on its own.
// RACE write-write heap:1000000 a b
// MAY-MISS shared: each place runs once
#include "race.h"

static char* block;

static void* First(void* argument) {
  block[500000] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  block[500000] = 2;  // [b]
  return argument;
}

int main(void) {
  block = (char*)malloc(1000000);
  RunTwo(First, Second);
  free(block);
  return Done();
}
