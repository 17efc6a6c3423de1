// jemalloc linked into the program: threads hand blocks on under a lock, and get each other's.
// CLEAN
// NEEDS jemalloc
// SECONDS 90
// OPTIONS --explain
// SAYS trapline: all loads and stores of jemalloc in
// LINK -l:libjemalloc_pic.a -lstdc++ -lm
// BUILD O0 O2 fixed gcc-O2-nodebug
// TSAN-DIFFERS the library is not instrumented
#include <string.h>

#include "race.h"

enum { kSlots = 64, kRounds = 100 };

static void* slots[kSlots];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* Worker(void* argument) {
  unsigned number = *(unsigned*)argument;
  for (int i = 0; i < kRounds; ++i) {
    number = number * 1103515245 + 12345;
    const size_t size = 8 + (number >> 16) % 2000;
    char* const block = (char*)malloc(size);
    memset(block, i, size);
    pthread_mutex_lock(&lock);
    void* const old = slots[number >> 26];
    slots[number >> 26] = block;
    pthread_mutex_unlock(&lock);
    free(old);
  }
  return NULL;
}

int main(void) {
  static unsigned seeds[3] = {1, 2, 3};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) threads[i] = Start(Worker, &seeds[i]);
  for (int i = 0; i < 3; ++i) Join(threads[i]);
  return Done();
}
