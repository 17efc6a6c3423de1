// Shared anonymous memory from mmap.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
#include <sys/mman.h>

#include "race.h"

static int* words;

static void* First(void* argument) {
  words[5] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  words[5] = 2;  // [b]
  return argument;
}

int main(void) {
  words = (int*)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  RunTwo(First, Second);
  return Done();
}
