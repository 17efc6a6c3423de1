// What a cmov has not moved is read by the load behind it all the same; and by one that overflow
// makes move.
// RACE read-write global:word a b
// RACE read-write global:other c d
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long word, other;

static void* First(void* argument) {
  long value = 0;
  // clang-format off
  __asm__ volatile("test %0, %0; cmovnz %1, %0; mov %1, %0" : "+r"(value) : "m"(word) : "cc");  // [a]
  signed char small = 127;
  long moved = 0;
  __asm__ volatile("add $1, %1; cmovo %2, %0" : "+r"(moved), "+q"(small) : "m"(other) : "cc");  // [c]
  // clang-format on
  Use(value);
  Use(moved);
  return argument;
}

static void* Second(void* argument) {
  word = 2;   // [b]
  other = 2;  // [d]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
