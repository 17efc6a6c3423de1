// The library's memcpy is called in partial code for memory that lies below where the kernel
// places it unless much is reserved: what the agent looks at for it faults in the mirror there.
// CLEAN
// BUILD O2
#include <string.h>
#include <sys/mman.h>

#include "race.h"

enum { kThreads = 3, kRounds = 1000, kCopies = 8, kPage = 4096 };

static const size_t kReserved = 8UL << 40, kSize = 64 << 20;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char* buffer;
static long* table;
static char source[kPage];
static volatile size_t size = 169;

static void* Map(size_t length, int protection) {
  void* const at =
      mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Check(at != MAP_FAILED);
  return at;
}

static void* Works(void* argument) {
  unsigned seed = (unsigned)(long)argument + 1;
  for (int round = 0; round < kRounds; round++) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 200; i++) {
      seed = seed * 1103515245 + 12345;
      table[(seed >> 8) % 65536] += seed & 7;
    }
    for (int i = 0; i < kCopies; i++) {
      seed = seed * 1103515245 + 12345;
      memcpy(buffer + (seed >> 8) % (1U << round % 14) * kPage + 1179, source, size);
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  Map(kReserved, PROT_NONE);
  buffer = Map(kSize, PROT_READ | PROT_WRITE);
  table = Map(kSize, PROT_READ | PROT_WRITE);
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; i++) threads[i] = Start(Works, (void*)i);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  return Done();
}
