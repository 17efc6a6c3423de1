// dup2 gives a number another meaning: it races with a close of the number.
// RACE any - a b
// MAY-MISS shared: who had the descriptor first did so alone
#include <fcntl.h>

#include "run_to_end.h"

static int descriptor, other;

static void* Duplicates(void* argument) {
  Check(dup2(other, descriptor) == descriptor);  // [a]
  return argument;
}

int main(void) {
  descriptor = open("/dev/zero", O_RDONLY);
  other = open("/dev/null", O_RDONLY);
  const pthread_t idle = StartIdle();
  const pthread_t duplicates = RunToEnd(Duplicates, NULL);
  close(descriptor);  // [b]
  EndIdle(idle);
  Join(duplicates);
  return Done();
}
