#include "guest.h"

static void* Inherited(void* argument) {
  (void)argument;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  const bool inherited = sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2);
  sigset_t more = SetOf(SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &more, NULL);
  return (void*)(intptr_t)inherited;
}

int main(void) {
  sigset_t set = SetOf(SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  void* inherited;
  pthread_join(Start(Inherited, NULL), &inherited);
  Fact(inherited != NULL, "a thread inherits its creator's mask");
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  Fact(sigismember(&mask, SIGUSR1) == 1, "main still blocks SIGUSR1");
  Fact(sigismember(&mask, SIGUSR2) == 0, "main does not block what the thread blocks");
  sigfillset(&set);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  Fact(!sigismember(&mask, SIGKILL) && !sigismember(&mask, SIGSTOP),
       "KILL and STOP cannot be blocked");
  return Done();
}
