// One thread pushes on a stack whose head is changed by lock cmpxchg16b, another one takes it all.
// CLEAN
// FLAGS -mcx16
#include "wide_stack.h"

enum { kNodes = 3 };

static void* Pushes(void* argument) {
  for (int i = 0; i < kNodes; i++) Push();
  return argument;
}

static void* Pops(void* argument) {
  TakeUntil(kNodes);
  return argument;
}

int main(void) {
  RunTwo(Pushes, Pops);
  return Done();
}
