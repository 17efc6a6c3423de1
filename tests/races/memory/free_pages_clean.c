// Pages given back by MADV_FREE are what the next one to write makes of them.
// CLEAN
#include <sys/mman.h>

#include "run_to_end.h"

static int* words;

static void* Writer(void* argument) {
  words[3] = 1;
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  const pthread_t writer = RunToEnd(Writer, NULL);
  Check(madvise(words, 4096, MADV_FREE) == 0);
  words[3] = 2;
  Join(writer);
  EndIdle(idle);
  return Done();
}
