// What is mapped right above the stack of a thread is no part of it: what the thread did there is
// known after its end.
// RACE write-write mapping a b
#include <sys/mman.h>

#include "run_to_end.h"

enum { kSize = 1 << 20 };
static long* block;

// Whether the caller's stack ends where the block begins, but for a page.
static int IsNeighbour(void) {
  pthread_attr_t attributes;
  void* stack;
  size_t size;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack, &size);
  pthread_attr_destroy(&attributes);
  const char* end = (char*)stack + size;
  return (char*)block >= end && (char*)block - end < 8192;
}

static void* Write(void* is_neighbour) {
  *(int*)is_neighbour = IsNeighbour();
  block[1] = 1;  // [a]
  return NULL;
}

int main(void) {
  const pthread_t idle = StartIdle();
  block = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int is_neighbour = 0;
  const pthread_t first = RunToEnd(Write, &is_neighbour);
  block[1] = 2;  // [b]
  Join(first);
  EndIdle(idle);
  return is_neighbour ? Done() : 1;
}
