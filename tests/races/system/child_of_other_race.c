// Who waits for any child does not come after what the thread that made it does afterwards.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <sys/wait.h>

#include "race.h"

int value;

static void* Forks(void* argument) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  Check(child > 0);
  value = 1;  // [a]
  Escape(&value);
  return argument;
}

static void* Reaps(void* argument) {
  while (waitpid(-1, NULL, 0) < 0) usleep(1000);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Forks, Reaps);
  return Done();
}
