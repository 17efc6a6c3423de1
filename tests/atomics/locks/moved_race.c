// A spin lock that moves with its page, and a count after it was given back.
// ONE-OF any - a b
// ONE-OF any - b b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: what follows a lock given back by a plain mov may pass for a repeat of what came before
#include "moved.h"

static void* Worker(void* argument) {
  CountAndMove(argument);
  for (int i = 0; i < 5; i++) {
    Lock();
    shared->value++;  // [a]
    Unlock();
  }
  shared->value++;  // [b]
  return argument;
}

int main(void) { return RunMoved(Worker); }
