// xsave writes its header and the components asked for.
// RACE write-write global:area a b
// NEEDS xsave
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char area[4096] __attribute__((aligned(64)));

static void* First(void* argument) {
  __asm__ volatile("xsave %0" : "+m"(area) : "a"(3), "d"(0));  // [a]
  return argument;
}

static void* Second(void* argument) {
  area[512] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
