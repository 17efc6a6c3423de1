// A page made read-only and writable again while readers use it; the writer waits for them.
// CLEAN
#include <sys/mman.h>

#include "race.h"

static int* words;
pthread_barrier_t phase;

static void* Reader(void* argument) {
  Use(words[1]);
  pthread_barrier_wait(&phase);
  return argument;
}

int main(void) {
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  words[1] = 1;
  pthread_barrier_init(&phase, NULL, 3);
  const pthread_t first = Start(Reader, NULL);
  const pthread_t second = Start(Reader, NULL);
  Check(mprotect(words, 4096, PROT_READ) == 0);
  Use(words[1]);
  pthread_barrier_wait(&phase);
  Check(mprotect(words, 4096, PROT_READ | PROT_WRITE) == 0);
  words[1] = 2;
  Join(first);
  Join(second);
  return Done();
}
