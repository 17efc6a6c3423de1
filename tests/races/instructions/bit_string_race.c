// bts with a register reaches far beyond its operand.
// RACE any global:bits a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long bits[512];

static void* First(void* argument) {
  __asm__ volatile("btsq %1, %0" : "+m"(bits[0]) : "r"(64L * 400 + 5) : "cc", "memory");  // [a]
  return argument;
}

static void* Second(void* argument) {
  bits[400] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
