// A race with an access made before the block moved: the history moves along.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it forgets the history of memory that moves
#include <sys/mman.h>

#include "run_to_end.h"

static int* words;

static void* Writer(void* argument) {
  words[3] = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* place = (char*)mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const pthread_t writer = RunToEnd(Writer, NULL);
  int* moved = (int*)mremap(words, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  Check((char*)moved == place);
  moved[3] = 2;  // [b]
  Join(writer);
  EndIdle(idle);
  return Done();
}
