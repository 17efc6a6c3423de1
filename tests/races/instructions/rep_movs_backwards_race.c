// rep movsb with the direction flag set goes downwards.
// RACE write-write global:target a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

char source[64];
char target[64];

static void* First(void* argument) {
  char* from = source + 40;
  char* to = target + 40;
  size_t count = 20;
  __asm__ volatile("std; rep movsb; cld"  // [a]
                   : "+S"(from), "+D"(to), "+c"(count)
                   :
                   : "memory", "cc");
  return argument;
}

static void* Second(void* argument) {
  target[21] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
