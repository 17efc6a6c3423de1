// Two threads write one block of an allocator inside the program, beside blocks of their own.
// RACE write-write - a a
// BUILD O0 O2 gcc-O2-nodebug
// MAY-MISS shared: each place runs once
// TAGS fast
#include "je_allocator.h"

static int* block;
static pthread_barrier_t both;

static void* Writer(void* argument) {
  je_free(je_arena_malloc_hard());
  int* const own = (int*)je_malloc();
  own[3] = 1;
  je_free(own);
  pthread_barrier_wait(&both);
  *(volatile int*)&block[3] = 1;  // [a]
  return argument;
}

int main(void) {
  pthread_barrier_init(&both, NULL, 2);
  block = (int*)je_malloc();
  RunTwo(Writer, Writer);
  return Done();
}
