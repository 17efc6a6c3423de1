// A lock in one bit of a word of flags, and a count after it was given back.
// ONE-OF any global:value a b
// ONE-OF any global:value b b
// MAY-MISS shared: who had the page first did so alone
#include "bit.h"

int value;

static void* Worker(void* argument) {
  for (int i = 0; i < 10; i++) {
    Lock();
    value++;  // [a]
    Unlock();
  }
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
