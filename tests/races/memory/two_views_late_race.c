// A second view of a file comes while the first one is in use, below it: the history stays that of
// the memory.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it takes two addresses for two places
#include <sys/mman.h>

#include "run_to_end.h"

static int* view;

static void* Writer(void* argument) {
  view[3] = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const int file = memfd_create("views", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  char* place = (char*)mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  view = (int*)mmap(place + 8192, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  Check(view != MAP_FAILED);
  const pthread_t writer = RunToEnd(Writer, NULL);
  int* const below =
      (int*)mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  Check(below != MAP_FAILED);
  below[3] = 2;  // [b]
  Join(writer);
  EndIdle(idle);
  return Done();
}
