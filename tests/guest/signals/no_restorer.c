// rt_sigaction without SA_RESTORER: x86-64 has no other way to return, delivery kills.
#include "guest.h"

static void Handler(int signal) { (void)signal; }

int main(void) {
  NoCore();
  const pid_t child = fork();
  if (child == 0) {
    struct {
      void (*handler)(int);
      unsigned long flags;
      void (*restorer)(void);
      unsigned long mask;
    } action = {Handler, 0, NULL, 0};
    if (syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8) != 0) _exit(1);
    raise(SIGUSR1);
    _exit(2);
  }
  const int status = Reap(child);
  Fact(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
       "a handler without restorer: death by SIGSEGV");
  return Done();
}
