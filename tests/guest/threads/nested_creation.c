// Threads create threads that create threads; whoever is left joins.
#include "guest.h"

static int leaves;

static void* Grow(void* argument) {
  const intptr_t depth = (intptr_t)argument;
  if (depth == 0) {
    Add(&leaves, 1);
    return (void*)1;
  }
  pthread_t left = Start(Grow, (void*)(depth - 1));
  pthread_t right = Start(Grow, (void*)(depth - 1));
  void* a;
  void* b;
  pthread_join(left, &a);
  pthread_join(right, &b);
  return (void*)((intptr_t)a + (intptr_t)b + 1);
}

int main(void) {
  void* nodes;
  pthread_join(Start(Grow, (void*)6), &nodes);
  Fact(leaves == 64, "64 leaves");
  Fact((intptr_t)nodes == 127, "127 threads");
  return Done();
}
