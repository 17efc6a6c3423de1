// A heap block; the report tells its size and who allocated it.
// RACE write-write heap:40 a b
// MAY-MISS shared: each place runs once
// TAGS fast
// BUILD O0 O2 fixed
#include "race.h"

static int* block;

static void* First(void* argument) {
  block[3] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  block[3] = 2;  // [b]
  return argument;
}

int main(void) {
  block = (int*)malloc(40);
  RunTwo(First, Second);
  free(block);
  return Done();
}
