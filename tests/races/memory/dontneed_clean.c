// Pages given back by MADV_DONTNEED under a mutex and used anew.
// CLEAN
#include <sys/mman.h>

#include "race.h"

static int* words;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Worker(void* argument) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&mutex);
    words[2]++;
    Check(madvise(words, 4096, MADV_DONTNEED) == 0);
    Check(words[2] == 0);
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(words != MAP_FAILED);
  RunTwo(Worker, Worker);
  return Done();
}
