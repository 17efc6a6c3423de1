// Hot code uses a page of its thread's own for a long time; then another thread comes.
// RACE read-write heap:4096 a b
// OPTIONS --hot-after=1000000000
#include <stdatomic.h>

#include "race.h"

enum { kWords = 512 };

static long* words;
static atomic_int rounds;

// The first thread's word, and only once does the other one come near.
static void* Counter(void* argument) {
  while (atomic_load_explicit(&rounds, memory_order_relaxed) < 40) {
    for (int i = 0; i < kWords; i++) words[i]++;  // [a]
  }
  return argument;
}

static void* Reader(void* argument) {
  for (int i = 0; i < 40; i++) {
    usleep(5000);
    if (i == 20) Use(words[7]);  // [b]
    atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
  }
  return argument;
}

int main(void) {
  words = aligned_alloc(4096, kWords * sizeof *words);
  RunTwo(Counter, Reader);
  return Done();
}
