// A debugger in miniature: trace a child, look at a register, let it go on.
#include <sys/ptrace.h>
#include <sys/user.h>

#include "guest.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(88);
    raise(SIGSTOP);
    kill(getpid(), SIGTERM);
    __asm__ volatile("int3");
    __asm__ volatile("ud2");
    _exit(14);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 88) Skip("may not trace");
  Fact(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "stopped by its signal");
  // What the debugger keeps from its child does not happen to it.
  const int expected[] = {SIGTERM, SIGTRAP, SIGILL, SIGILL};
  for (int i = 0; i < 4; ++i) {
    Fact(ptrace(PTRACE_CONT, child, NULL, NULL) == 0, "continued");
    waitpid(child, &status, 0);
    Fact(WIFSTOPPED(status) && WSTOPSIG(status) == expected[i], "stopped by signal %d",
         expected[i]);
  }
  kill(child, SIGKILL);
  const int end = Reap(child);
  Fact(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL, "killed");
  const pid_t other = fork();
  if (other == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    __asm__ volatile("int3");
    _exit(14);
  }
  waitpid(other, &status, 0);
  Fact(ptrace(PTRACE_CONT, other, NULL, NULL) == 0, "another one continued");
  Fact(WEXITSTATUS(Reap(other)) == 14, "ended");
  return Done();
}
