// Parent and child write the same address, each in its own memory.
// CLEAN
#include <sys/wait.h>

#include "race.h"

int value;

static void* Idle(void* argument) {
  usleep(1000);
  return argument;
}

int main(void) {
  const pthread_t idle = Start(Idle, NULL);
  const pid_t child = fork();
  Check(child >= 0);
  value++;
  if (child == 0) _exit(value == 1 ? 0 : 1);
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0);
  Join(idle);
  return value == 1 ? Done() : 1;
}
