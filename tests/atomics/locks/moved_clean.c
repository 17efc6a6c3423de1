// A spin lock and what it protects move with their page.
// CLEAN
#include "moved.h"

static void* Worker(void* argument) {
  CountAndMove(argument);
  for (int i = 0; i < 5; i++) {
    Lock();
    shared->value++;
    Unlock();
  }
  return argument;
}

int main(void) { return RunMoved(Worker); }
