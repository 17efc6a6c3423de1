// A lock of std::atomic_flag with wait and notify, and a count after it was given back.
// ONE-OF any global:value a b
// ONE-OF any global:value b b
// MAY-MISS shared: who had the page first did so alone
#include "flag_wait.h"

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

int main() {
  RunTwo(Worker, Worker);
  return Done();
}
