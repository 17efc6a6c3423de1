// A forked child makes threads, and they race.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// BUILD O0 O2 static
#include <sys/wait.h>

#include "race.h"

int value;

static void* First(void* argument) {
  value = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  value = 2;  // [b]
  return argument;
}

int main(void) {
  const pid_t child = fork();
  Check(child >= 0);
  if (child == 0) {
    RunTwo(First, Second);
    _exit(0);
  }
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0);
  return Done();
}
