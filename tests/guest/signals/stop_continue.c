#include "guest.h"

int main(void) {
  int go_on[2];
  if (pipe(go_on) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    char byte;
    _exit(read(go_on[0], &byte, 1) == 1 ? 42 : 1);
  }
  int status = 0;
  Fact(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) &&
           WSTOPSIG(status) == SIGSTOP,
       "the child has stopped");
  kill(child, SIGCONT);
  Fact(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status), "it goes on");
  if (write(go_on[1], "x", 1) != 1) return 1;
  Fact(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42,
       "it ended as it should");
  // A whole process of threads stops and goes on, from outside.
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t spinner = fork();
  if (spinner == 0) {
    for (;;) {
      if (write(ends[1], "x", 1) != 1) _exit(1);
      SleepMs(1);
    }
  }
  char byte;
  Fact(read(ends[0], &byte, 1) == 1, "running");
  kill(spinner, SIGSTOP);
  Fact(waitpid(spinner, &status, WUNTRACED) == spinner && WIFSTOPPED(status) &&
           WSTOPSIG(status) == SIGSTOP,
       "stopped from outside");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  char buffer[4096];
  while (read(ends[0], buffer, sizeof(buffer)) > 0) {
  }
  SleepMs(20);
  Fact(read(ends[0], buffer, sizeof(buffer)) == -1 && errno == EAGAIN, "silent while stopped");
  kill(spinner, SIGCONT);
  fcntl(ends[0], F_SETFL, 0);
  Fact(read(ends[0], buffer, sizeof(buffer)) > 0, "running again");
  kill(spinner, SIGKILL);
  Fact(WTERMSIG(Reap(spinner)) == SIGKILL, "killed");
  return Done();
}
