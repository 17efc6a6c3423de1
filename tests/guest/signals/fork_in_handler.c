#include "guest.h"

static int children;
static void Fork(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  const pid_t child = fork();
  if (child == 0) _exit(9);
  int status;
  if (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9) ++children;
}

int main(void) {
  Handle(SIGUSR1, Fork, 0);
  for (int i = 0; i < 5; ++i) raise(SIGUSR1);
  Fact(children == 5, "5 children made and awaited in a handler");
  // A child that returns from the handler in the copy.
  static volatile int value = 1;
  signal(SIGUSR2, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    Handle(SIGUSR1, Fork, 0);
    value = 2;
    raise(SIGUSR1);
    _exit(children == 6 && value == 2 ? 0 : 1);
  }
  Fact(Reap(child) == 0, "a forked child handles signals itself");
  Fact(value == 1, "in memory of its own");
  return Done();
}
