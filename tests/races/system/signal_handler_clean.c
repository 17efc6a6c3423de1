// A handler and the code that it interrupts are one thread.
// CLEAN
#include <signal.h>

#include "race.h"

__thread volatile int depth;

static void Handler(int signal) { depth += signal; }

static void* Raiser(void* argument) {
  depth++;
  raise(SIGUSR1);
  depth++;
  Check(depth == 2 + SIGUSR1);
  return argument;
}

int main(void) {
  signal(SIGUSR1, Handler);
  RunTwo(Raiser, Raiser);
  return Done();
}
