// A cmov whose condition holds reads its operand; setcc writes a byte.
// RACE read-write global:word a b
// RACE write-write global:byte s t
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long word;
char byte;

static void* First(void* argument) {
  long value = 1;
  __asm__ volatile("test %0, %0; cmovnz %1, %0" : "+r"(value) : "m"(word) : "cc");  // [a]
  __asm__ volatile("sete %0" : "=m"(byte) : : "cc");                                // [s]
  Use(value);
  return argument;
}

static void* Second(void* argument) {
  word = 2;  // [b]
  byte = 2;  // [t]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
