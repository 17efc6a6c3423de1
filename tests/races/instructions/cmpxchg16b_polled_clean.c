// As cmpxchg16b_clean, but the thread that takes polls for so long that it does so natively.
// CLEAN
// FLAGS -mcx16
#include "wide_stack.h"

enum { kNodes = 40 };

static void* Pushes(void* argument) {
  for (int i = 0; i < kNodes; i++) {
    usleep(2000);
    Push();
  }
  return argument;
}

static void* Polls(void* argument) {
  TakeUntil(kNodes);
  return argument;
}

int main(void) {
  RunTwo(Pushes, Polls);
  return Done();
}
