// repne scasb reads as far as it finds, and no further.
// RACE read-write global:text a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char text[64] = "a text of some length";

static void* First(void* argument) {
  char* from = text;
  size_t count = sizeof(text);
  __asm__ volatile("repne scasb" : "+D"(from), "+c"(count) : "a"(0) : "memory", "cc");  // [a]
  Use((long)count);
  return argument;
}

static void* Second(void* argument) {
  text[20] = 'H';  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
