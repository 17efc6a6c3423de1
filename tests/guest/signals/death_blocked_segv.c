// A fault whose signal is blocked kills, handler or not.
#include "guest.h"

static void Never(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Fact(false, "handler ran");
  _exit(1);
}

int main(void) {
  NoCore();
  Handle(SIGSEGV, Never, 0);
  sigset_t set = SetOf(SIGSEGV);
  sigprocmask(SIG_BLOCK, &set, NULL);
  Fact(true, "faulting with SIGSEGV blocked");
  *(volatile int*)NULL = 1;
  return 1;
}
