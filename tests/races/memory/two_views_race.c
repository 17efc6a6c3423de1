// One file mapped twice: the same memory at two addresses.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it takes two addresses for two places
#include <sys/mman.h>

#include "race.h"

static int* one_view;
static int* other_view;

static void* First(void* argument) {
  one_view[3] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  other_view[3] = 2;  // [b]
  return argument;
}

int main(void) {
  const int file = memfd_create("views", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  one_view = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  other_view = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(one_view != MAP_FAILED && other_view != MAP_FAILED);
  RunTwo(First, Second);
  return Done();
}
