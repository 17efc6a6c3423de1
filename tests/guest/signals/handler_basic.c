#include "guest.h"

static volatile sig_atomic_t plain_calls;
static volatile int seen_signal;
static volatile int seen_code;
static volatile pid_t seen_pid;
static volatile bool context_good;
static int on_stack_marker;

static void Plain(int signal) { plain_calls += signal == SIGUSR1; }

static void Info(int signal, siginfo_t* info, void* context) {
  const ucontext_t* user = context;
  seen_signal = signal;
  seen_code = info->si_code;
  seen_pid = info->si_pid;
  const uintptr_t sp = (uintptr_t)user->uc_mcontext.gregs[REG_RSP];
  context_good = sp > (uintptr_t)&sp && user->uc_mcontext.gregs[REG_CSGSFS] != 0 &&
                 user->uc_mcontext.fpregs != NULL && user->uc_mcontext.gregs[REG_RIP] != 0;
}

int main(void) {
  signal(SIGUSR1, Plain);
  for (int i = 0; i < 100; ++i) raise(SIGUSR1);
  Fact(plain_calls == 100, "a plain handler ran 100 times");
  Handle(SIGUSR2, Info, 0);
  kill(getpid(), SIGUSR2);
  Fact(seen_signal == SIGUSR2, "SA_SIGINFO: signal number");
  Fact(seen_code == SI_USER, "si_code SI_USER");
  Fact(seen_pid == getpid(), "si_pid is the sender");
  Fact(context_good, "the context has RSP, RIP, selectors and vector state");
  raise(SIGUSR2);
  Fact(seen_code == SI_TKILL, "raise: SI_TKILL");
  struct sigaction action;
  sigaction(SIGUSR2, NULL, &action);
  Fact(action.sa_sigaction == Info && (action.sa_flags & SA_SIGINFO),
       "sigaction tells the handler");
  Fact(sigaction(SIGKILL, NULL, &action) == 0, "SIGKILL's action may be asked for");
  action.sa_handler = SIG_IGN;
  Fact(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL, "but not changed");
  Fact(kill(getpid(), 65) == -1 && errno == EINVAL, "signal 65 is EINVAL");
  signal(SIGUSR1, SIG_IGN);
  raise(SIGUSR1);
  Fact(plain_calls == 100, "ignored");
  on_stack_marker = 1;
  return Done();
}
