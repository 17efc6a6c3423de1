// A store of the high byte register and a 16-bit load.
// RACE any global:bytes a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char bytes[8];

static void* First(void* argument) {
  __asm__ volatile("mov $0x100, %%eax; movb %%ah, %0" : "=m"(bytes[3]) : : "rax");  // [a]
  return argument;
}

static void* Second(void* argument) {
  short both;
  __asm__ volatile("movw %1, %0" : "=r"(both) : "m"(*(short*)&bytes[2]));  // [b]
  Use(both);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
