// bts with a register does not touch the operand it starts from.
// CLEAN
#include "race.h"

long bits[512];

static void* First(void* argument) {
  __asm__ volatile("btsq %1, %0" : "+m"(bits[0]) : "r"(64L * 400 + 5) : "cc", "memory");
  return argument;
}

static void* Second(void* argument) {
  bits[0] = 2;
  bits[399] = 2;
  bits[401] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
