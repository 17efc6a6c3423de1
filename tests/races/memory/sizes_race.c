// Eight bytes against the last one of them.
// RACE write-write global:block a b
// MAY-MISS shared: each place runs once
#include "race.h"

union {
  long whole;
  char bytes[8];
} block;

static void* First(void* argument) {
  block.whole = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  block.bytes[7] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
