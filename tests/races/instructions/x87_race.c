// x87: a ten-byte store, of which one byte is raced for.
// RACE write-write global:block a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

union {
  long double number;
  char bytes[16];
} block;

static void* First(void* argument) {
  __asm__ volatile("fld1; fstpt %0" : "=m"(block.number));  // [a]
  return argument;
}

static void* Second(void* argument) {
  block.bytes[9] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
