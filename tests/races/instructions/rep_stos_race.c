// rep stosb over a byte in its middle.
// RACE write-write global:bytes a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char bytes[200];

static void* First(void* argument) {
  char* to = bytes;
  size_t count = 100;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(1) : "memory");  // [a]
  return argument;
}

static void* Second(void* argument) {
  bytes[99] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
