// Blocks of an allocator inside the program that one thread gives back and another one gets.
// CLEAN
// OPTIONS --explain
// SAYS trapline: all loads and stores of jemalloc in
// BUILD O0 O2 fixed gcc-O2-nodebug clang-O2
// TSAN-DIFFERS the order is made by inline assembly
// TAGS fast
#include "je_allocator.h"

static void* Giver(void* argument) {
  for (int i = 0; i < 200; ++i) {
    int* const block = (int*)je_arena_malloc_hard();
    block[3] = i;
    je_free(block);
    if (i % 16 == 0) usleep(200);
  }
  return argument;
}

static void* Getter(void* argument) {
  for (int i = 0; i < 200; ++i) {
    int* const block = (int*)je_malloc();
    block[3]++;
    if (i % 16 == 0) usleep(200);
  }
  return argument;
}

int main(void) {
  RunTwo(Giver, Getter);
  return Done();
}
