// CLEAN
// Two threads take turns on memory of which each has a mapping of its own, by single instructions
// that make more accesses than hot code waits for.
#include <pthread.h>
#include <sys/mman.h>

#include "race.h"

enum { kBytes = 1 << 20, kTurns = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int file;

static void Fill(char* to, char value) {
  unsigned long count = kBytes;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
}

static void* Writer(void* argument) {
  char* const view = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(view != MAP_FAILED);
  for (int turn = 0; turn < kTurns; turn++) {
    pthread_mutex_lock(&mutex);
    Fill(view, (char)turn);
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  file = memfd_create("x", 0);
  Check(ftruncate(file, kBytes) == 0);
  RunTwo(Writer, Writer);
  return Done();
}
