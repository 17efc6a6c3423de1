// Counters of an allocator inside the program are its own affair.
// CLEAN
// BUILD O0 O2
// TSAN-DIFFERS nothing orders them; it knows no allocators
#include "je_allocator.h"

static long requests;
static pthread_barrier_t both;

void je_stats_count(void);

__attribute__((noinline)) void je_stats_count(void) { *(volatile long*)&requests = 1; }

static void* Worker(void* argument) {
  je_free(je_arena_malloc_hard());
  pthread_barrier_wait(&both);
  je_stats_count();
  return argument;
}

int main(void) {
  pthread_barrier_init(&both, NULL, 2);
  Check(je_malloc() != NULL);
  RunTwo(Worker, Worker);
  return Done();
}
