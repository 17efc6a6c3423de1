// A flag and its data in a memfd, each thread with a mapping of its own.
// RACE any - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <stdatomic.h>
#include <sys/mman.h>

#include "race.h"

typedef struct {
  atomic_int ready;
  int value;
} Shared;

static int file;

static Shared* Map(void) {
  void* const at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(at != MAP_FAILED);
  return at;
}

static void* Giver(void* argument) {
  Shared* const shared = Map();
  atomic_store_explicit(&shared->ready, 1, memory_order_release);
  shared->value = 1;  // [a]
  return argument;
}

static void* Taker(void* argument) {
  Shared* const shared = Map();
  while (!atomic_load_explicit(&shared->ready, memory_order_acquire)) usleep(100);
  shared->value = 2;  // [b]
  return argument;
}

int main(void) {
  file = memfd_create("x", 0);
  Check(ftruncate(file, 4096) == 0);
  RunTwo(Giver, Taker);
  return Done();
}
