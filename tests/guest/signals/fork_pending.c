#include "guest.h"

int main(void) {
  sigset_t set = SetOf(SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGUSR1);
  alarm(1000);
  const pid_t child = fork();
  if (child == 0) {
    sigset_t pending;
    sigpending(&pending);
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    _exit(!sigismember(&pending, SIGUSR1) && sigismember(&mask, SIGUSR1) && alarm(0) == 0 ? 0 : 1);
  }
  Fact(Reap(child) == 0, "a child inherits the mask, but neither pending signals nor alarms");
  sigset_t pending;
  sigpending(&pending);
  Fact(sigismember(&pending, SIGUSR1) == 1, "still pending for the parent");
  Fact(alarm(0) > 0, "whose alarm goes on");
  return Done();
}
