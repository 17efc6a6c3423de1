#include "guest.h"

static volatile int reaped;
static volatile int status_sum;
static volatile bool info_good = true;

static void Reaper(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  info_good = info_good && info->si_pid > 0 &&
              (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED) &&
              info->si_uid == getuid();
  int status;
  while (waitpid(-1, &status, WNOHANG) > 0) {
    ++reaped;
    status_sum += WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  }
}

int main(void) {
  Handle(SIGCHLD, Reaper, SA_RESTART | SA_NOCLDSTOP);
  sigset_t set = SetOf(SIGCHLD);
  sigset_t old;
  sigprocmask(SIG_BLOCK, &set, &old);
  for (int i = 0; i < 30; ++i) {
    if (fork() == 0) _exit(i);
  }
  while (reaped < 30) sigsuspend(&old);
  Fact(reaped == 30, "30 children reaped in the handler");
  Fact(status_sum == 435, "each with its status");
  Fact(info_good, "siginfo tells a child");
  return Done();
}
