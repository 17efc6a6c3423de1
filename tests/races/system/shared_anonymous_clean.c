// A child writes memory that it shares with its parent, who reads it afterwards: accesses of
// different processes are not compared, and the report says so.
// CLEAN
// SHARED 1
// SAYS trapline: an anonymous shared mapping (8192 bytes) is shared by processes
// BUILD O0 O2 static
// TAGS fast
#include <sys/mman.h>
#include <sys/wait.h>

#include "race.h"

int main(void) {
  volatile int* const shared =
      mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(shared != MAP_FAILED);
  const pid_t child = fork();
  Check(child >= 0);
  if (child == 0) {
    shared[1] = 1;
    _exit(0);
  }
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0);
  Check(shared[1] == 1);
  return Done();
}
