#include "guest.h"

int main(void) {
  pid_t children[20];
  for (int i = 0; i < 20; ++i) {
    children[i] = fork();
    if (children[i] == 0) _exit(i);
  }
  siginfo_t info;
  for (int i = 0; i < 20; ++i) waitid(P_PID, (id_t)children[i], &info, WEXITED | WNOWAIT);
  Fact(kill(children[5], 0) == 0, "a zombie can be signalled");
  int sum = 0;
  int status;
  while (wait(&status) > 0) sum += WEXITSTATUS(status);
  Fact(sum == 190, "20 zombies reaped");
  Fact(errno == ECHILD, "then ECHILD");
  Fact(kill(children[5], 0) == -1 && errno == ESRCH, "gone");
  signal(SIGCHLD, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  Fact(waitpid(child, &status, 0) == -1 && errno == ECHILD,
       "SIGCHLD ignored: children leave no zombie");
  return Done();
}
