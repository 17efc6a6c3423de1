// MADV_DONTNEED takes nothing out of a shared mapping: what was written there still is.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it forgets the history
#include <sys/mman.h>

#include "run_to_end.h"

static int* words;

static void* Writer(void* argument) {
  words[3] = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  const pthread_t writer = RunToEnd(Writer, NULL);
  Check(madvise(words, 4096, MADV_DONTNEED) == 0 && words[4] == 0);
  words[3] = 2;  // [b]
  Join(writer);
  EndIdle(idle);
  return Done();
}
