// repe cmpsb reads both sides.
// RACE read-write global:right a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char left[16] = "the same text";
char right[16] = "the same text";

static void* First(void* argument) {
  char* one = left;
  char* other = right;
  size_t count = sizeof(left);
  __asm__ volatile("repe cmpsb" : "+S"(one), "+D"(other), "+c"(count) : : "memory", "cc");  // [a]
  Use((long)count);
  return argument;
}

static void* Second(void* argument) {
  right[0] = 't';  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
