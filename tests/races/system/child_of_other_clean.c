// Who waits for any child comes after the thread that made it, up to then.
// CLEAN
#include <sys/wait.h>

#include "race.h"

int value;

static void* Forks(void* argument) {
  value = 1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  Check(child > 0);
  return argument;
}

static void* Reaps(void* argument) {
  while (waitpid(-1, NULL, 0) < 0) usleep(1000);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Forks, Reaps);
  return Done();
}
