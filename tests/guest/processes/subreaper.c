#include <sys/prctl.h>

#include "guest.h"

int main(void) {
  Fact(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "adopts orphans");
  const pid_t middle = fork();
  if (middle == 0) {
    if (fork() == 0) {
      SleepMs(10);
      _exit(77);
    }
    _exit(0);
  }
  Fact(Reap(middle) == 0, "the middle one is gone");
  int status = 0;
  const pid_t orphan = wait(&status);
  Fact(orphan > 0 && WEXITSTATUS(status) == 77, "the grandchild was reaped by its grandparent");
  return Done();
}
