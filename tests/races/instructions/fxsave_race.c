// fxsave writes 512 bytes.
// RACE write-write global:area a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char area[512] __attribute__((aligned(16)));

static void* First(void* argument) {
  __asm__ volatile("fxsave %0" : "=m"(area));  // [a]
  return argument;
}

static void* Second(void* argument) {
  area[24] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
