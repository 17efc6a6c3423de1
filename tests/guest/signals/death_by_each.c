// A child dies by each signal whose default is death: the parent sees which.
#include "guest.h"

int main(void) {
  NoCore();
  const int signals[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT, SIGBUS,
                         SIGFPE,  SIGKILL,   SIGUSR1, SIGSEGV, SIGUSR2,   SIGPIPE, SIGALRM,
                         SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,
                         SIGPWR,  SIGSYS,    34,      64};
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      signal(signals[i], SIG_DFL);
      kill(getpid(), signals[i]);
      _exit(0);
    }
    const int status = Reap(child);
    Fact(WIFSIGNALED(status) && WTERMSIG(status) == signals[i], "child died by signal %d",
         signals[i]);
  }
  const int harmless[] = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
  for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      kill(getpid(), harmless[i]);
      _exit(33);
    }
    Fact(WEXITSTATUS(Reap(child)) == 33, "child survived signal %d", harmless[i]);
  }
  return Done();
}
