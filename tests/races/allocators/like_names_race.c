// Functions that are called as some of jemalloc's, and are the program's all the same.
// RACE write-write global:count a a
// MAY-MISS shared: each place runs once
// TAGS fast
#include "race.h"

static int count;

void* je_malloc(size_t size);
void je_free(void* block);
void je_arena_init(void);
void je_count(void);

__attribute__((noinline)) void* je_malloc(size_t size) { return malloc(size); }
__attribute__((noinline)) void je_free(void* block) { free(block); }
__attribute__((noinline)) void je_count(void) {
  *(volatile int*)&count = 1;  // [a]
}
__attribute__((noinline)) void je_arena_init(void) { je_count(); }

static void* Worker(void* argument) {
  je_free(je_malloc(8));
  je_arena_init();
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
