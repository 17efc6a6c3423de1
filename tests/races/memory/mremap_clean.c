// A block moved by mremap under a mutex that all its users take.
// CLEAN
#include <sys/mman.h>

#include "race.h"

static int* words;
static size_t size = 4096;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Grower(void* argument) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&mutex);
    words = (int*)mremap(words, size, size + 65536, MREMAP_MAYMOVE);
    Check(words != MAP_FAILED);
    size += 65536;
    words[1]++;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  words = (int*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  RunTwo(Grower, Grower);
  return words[1] == 6 ? Done() : 1;
}
