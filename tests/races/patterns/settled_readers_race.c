// Hot code of two threads only reads a page for a long time; then a third one writes.
// RACE read-write heap:4096 a b
// OPTIONS --hot-after=1000000000
#include <stdatomic.h>

#include "race.h"

enum { kWords = 512 };

static long* words;
static atomic_int ended;

static void* Reader(void* argument) {
  while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
    for (int i = 0; i < kWords; i++) Use(words[i]);  // [a]
  }
  return argument;
}

static void* Writer(void* argument) {
  usleep(100000);
  words[7] = 1;  // [b]
  usleep(50000);
  atomic_store_explicit(&ended, 1, memory_order_relaxed);
  return argument;
}

int main(void) {
  words = aligned_alloc(4096, kWords * sizeof *words);
  for (int i = 0; i < kWords; i++) words[i] = i;
  const pthread_t other = Start(Reader, NULL);
  RunTwo(Reader, Writer);
  Join(other);
  return Done();
}
