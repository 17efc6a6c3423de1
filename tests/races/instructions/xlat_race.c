// xlat reads one byte of its table.
// RACE read-write global:table a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char table[256];

static void* First(void* argument) {
  int index = 77;
  __asm__ volatile("xlat" : "+a"(index) : "b"(table) : "memory");  // [a]
  Use(index);
  return argument;
}

static void* Second(void* argument) {
  table[77] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
