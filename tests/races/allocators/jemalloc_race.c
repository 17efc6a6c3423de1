// jemalloc linked into the program: two threads write one block.
// RACE write-write - a a
// NEEDS jemalloc
// LINK -l:libjemalloc_pic.a -lstdc++ -lm
// BUILD O0 O2 gcc-O2-nodebug
// MAY-MISS shared: each place runs once
#include "race.h"

static int* block;
static pthread_barrier_t both;

static void* Writer(void* argument) {
  free(malloc(40));
  // A thread's first block orders it after others, and so does its end.
  pthread_barrier_wait(&both);
  *(volatile int*)&block[3] = 1;  // [a]
  return argument;
}

int main(void) {
  pthread_barrier_init(&both, NULL, 2);
  block = (int*)malloc(64);
  RunTwo(Writer, Writer);
  return Done();
}
