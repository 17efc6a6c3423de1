// What is mapped right above the stack of a thread is no part of it: what the thread did there is
// known after its end.
// RACE write-write mapping a b
#include <sys/mman.h>

#include "run_to_end.h"

enum { kSize = 1 << 20, kTries = 7 };
typedef struct Try {
  long* block;
  int is_neighbour;
} Try;

// Whether the caller's stack ends where the block begins, but for a page.
static int IsNeighbour(const long* block) {
  pthread_attr_t attributes;
  void* stack;
  size_t size;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack, &size);
  pthread_attr_destroy(&attributes);
  const char* end = (char*)stack + size;
  return (const char*)block >= end && (const char*)block - end < 8192;
}

static void* Write(void* argument) {
  Try* const mine = argument;
  __atomic_store_n(&mine->is_neighbour, IsNeighbour(mine->block), __ATOMIC_RELAXED);
  mine->block[1] = 1;  // [a]
  return NULL;
}

// The monitor may have mapped something in between. A thread that was joined would leave its stack
// to the next one.
int main(void) {
  const pthread_t idle = StartIdle();
  static Try tries[kTries];
  pthread_t threads[kTries];
  int count = 0, is_neighbour = 0;
  while (count < kTries && !is_neighbour) {
    Try* const one = &tries[count];
    one->block = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    threads[count++] = RunToEnd(Write, one);
    is_neighbour = __atomic_load_n(&one->is_neighbour, __ATOMIC_RELAXED);
    one->block[1] = 2;  // [b]
  }
  for (int i = 0; i < count; i++) Join(threads[i]);
  EndIdle(idle);
  return is_neighbour ? Done() : 1;
}
