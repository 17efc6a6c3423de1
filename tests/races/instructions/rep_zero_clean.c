// A repeated instruction with a count of zero touches nothing.
// CLEAN
#include "race.h"

char bytes[64];

static void* First(void* argument) {
  char* to = bytes;
  size_t count = 0;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(1) : "memory");
  bytes[1] = 1;
  return argument;
}

static void* Second(void* argument) {
  bytes[0] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
