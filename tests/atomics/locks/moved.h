// A spin lock and what it protects move with their page.
#include <stdatomic.h>
#include <sys/mman.h>

#include "race.h"

typedef struct {
  atomic_int lock;
  int value;
} Shared;

static Shared* shared;
static pthread_barrier_t barrier;

static void Lock(void) {
  while (atomic_exchange_explicit(&shared->lock, 1, memory_order_acquire)) usleep(10);
}
static void Unlock(void) { atomic_store_explicit(&shared->lock, 0, memory_order_release); }

// All count, then one who has an argument moves the page, between two barriers.
static void CountAndMove(const void* argument) {
  Lock();
  shared->value++;
  Unlock();
  pthread_barrier_wait(&barrier);
  if (argument) {
    void* const at = mremap(shared, 4096, 3 * 4096, MREMAP_MAYMOVE);
    Check(at != MAP_FAILED);
    void* const to = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mremap(at, 12288, 12288, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    Check(shared == to);
  }
  pthread_barrier_wait(&barrier);
}

// Two threads run `worker`, one with an argument.
static int RunMoved(ThreadFunction worker) {
  pthread_barrier_init(&barrier, NULL, 2);
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const pthread_t one = Start(worker, NULL), other = Start(worker, &barrier);
  Join(one);
  Join(other);
  return Done();
}
