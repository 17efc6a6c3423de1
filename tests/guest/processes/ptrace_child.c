// A debugger in miniature: trace a child, look at a register, let it go on.
#include <sys/ptrace.h>
#include <sys/user.h>

#include "guest.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(88);
    raise(SIGSTOP);
    _exit(14);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 88) Skip("may not trace");
  Fact(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "stopped by its signal");
  Fact(ptrace(PTRACE_CONT, child, NULL, NULL) == 0, "continued");
  Fact(WEXITSTATUS(Reap(child)) == 14, "ended");
  return Done();
}
