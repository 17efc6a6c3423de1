// Anonymous shared memory that mremap shows once more, from its second page on: a race by two
// addresses.
// RACE write-write mapping a b
// TSAN-DIFFERS it takes two addresses for two places
#include <sys/mman.h>

#include "race.h"

static int *one_view, *other_view;

static void* First(void* argument) {
  for (int i = 0; i < 50; i++) {
    one_view[1030] = i;  // [a]
    usleep(100);
  }
  return argument;
}

static void* Second(void* argument) {
  for (int i = 0; i < 50; i++) {
    other_view[6] = i;  // [b]
    usleep(100);
  }
  return argument;
}

int main(void) {
  one_view = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(one_view != MAP_FAILED);
  other_view = mremap(one_view + 1024, 0, 4096, MREMAP_MAYMOVE);
  Check(other_view != MAP_FAILED);
  RunTwo(First, Second);
  return Done();
}
