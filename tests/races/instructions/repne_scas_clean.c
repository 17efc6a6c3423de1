// repne scasb stops at what it finds.
// CLEAN
#include "race.h"

char text[64] = "a text of some length";

static void* First(void* argument) {
  char* from = text;
  size_t count = sizeof(text);
  __asm__ volatile("repne scasb" : "+D"(from), "+c"(count) : "a"(0) : "memory", "cc");
  Use((long)count);
  return argument;
}

static void* Second(void* argument) {
  text[30] = 'x';
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
