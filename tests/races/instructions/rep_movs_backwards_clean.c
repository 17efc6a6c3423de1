// rep movsb with the direction flag set: what lies above and below is not touched.
// CLEAN
#include "race.h"

char source[64];
char target[64];

static void* First(void* argument) {
  char* from = source + 40;
  char* to = target + 40;
  size_t count = 20;
  __asm__ volatile("std; rep movsb; cld" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
  return argument;
}

static void* Second(void* argument) {
  target[20] = 2;
  target[41] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
