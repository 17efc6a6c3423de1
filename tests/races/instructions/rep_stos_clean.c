// rep stosb ends where its count says.
// CLEAN
#include "race.h"

char bytes[200];

static void* First(void* argument) {
  char* to = bytes;
  size_t count = 100;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(1) : "memory");
  return argument;
}

static void* Second(void* argument) {
  bytes[100] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
