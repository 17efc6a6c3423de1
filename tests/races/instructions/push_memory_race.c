// push of a memory operand reads it.
// RACE read-write global:word a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long word;

static void* First(void* argument) {
  long value;
  __asm__ volatile("lea -128(%%rsp), %%rsp; pushq %1; popq %0; lea 128(%%rsp), %%rsp"  // [a]
                   : "=r"(value)
                   : "m"(word));
  Use(value);
  return argument;
}

static void* Second(void* argument) {
  word = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
