// A flag and its data in a memfd, each thread with a mapping of its own.
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

static void Publish(Shared* shared) {
  atomic_store_explicit(&shared->ready, 1, memory_order_release);
}

static void Await(Shared* shared) {
  while (!atomic_load_explicit(&shared->ready, memory_order_acquire)) usleep(100);
}

static int RunViews(ThreadFunction giver, ThreadFunction taker) {
  file = memfd_create("x", 0);
  Check(ftruncate(file, 4096) == 0);
  RunTwo(giver, taker);
  return Done();
}
