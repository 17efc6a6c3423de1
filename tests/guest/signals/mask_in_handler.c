#include "guest.h"

static volatile bool self_blocked;
static volatile bool other_blocked;
static volatile bool third_blocked;

static void Look(int signal, siginfo_t* info, void* context) {
  (void)info;
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  self_blocked = sigismember(&mask, signal);
  other_blocked = sigismember(&mask, SIGUSR2);
  third_blocked = sigismember(&mask, SIGALRM);
  // What is in the frame becomes the mask on return.
  ucontext_t* user = context;
  if (!sigismember(&user->uc_sigmask, SIGUSR1)) sigaddset(&user->uc_sigmask, SIGCHLD);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = Look;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGUSR2);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  Fact(self_blocked, "its own signal is blocked");
  Fact(other_blocked, "that of sa_mask too");
  Fact(!third_blocked, "others are not");
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  Fact(!sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2), "unblocked on return");
  Fact(sigismember(&mask, SIGCHLD) == 1, "a mask changed in the frame holds after return");
  return Done();
}
