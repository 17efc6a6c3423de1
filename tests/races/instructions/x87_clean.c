// x87: a ten-byte store leaves the padding of a long double alone.
// CLEAN
#include "race.h"

union {
  long double number;
  char bytes[16];
} block;

static void* First(void* argument) {
  __asm__ volatile("fld1; fstpt %0" : "=m"(block.number));
  return argument;
}

static void* Second(void* argument) {
  block.bytes[10] = 2;
  block.bytes[15] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
