// execve: handlers become the default, ignored ones stay ignored, the mask and what is pending
// stay.
#include "guest.h"

static void Never(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  _exit(1);
}

int main(int argc, char** argv) {
  struct sigaction action;
  if (argc > 1) {
    sigaction(SIGUSR1, NULL, &action);
    Fact(action.sa_handler == SIG_DFL, "a handler became the default");
    sigaction(SIGUSR2, NULL, &action);
    Fact(action.sa_handler == SIG_IGN, "an ignored one stayed ignored");
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    Fact(sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 0, "the mask stayed");
    sigpending(&mask);
    Fact(sigismember(&mask, SIGTERM) == 1, "what was pending is pending");
    stack_t stack;
    sigaltstack(NULL, &stack);
    Fact(stack.ss_flags == SS_DISABLE, "the alternate stack is gone");
    return Done();
  }
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate), .ss_flags = 0};
  sigaltstack(&stack, NULL);
  Handle(SIGUSR1, Never, 0);
  signal(SIGUSR2, SIG_IGN);
  sigset_t set = SetOf(SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGTERM);
  char* arguments[] = {argv[0], (char*)"again", NULL};
  execv("/proc/self/exe", arguments);
  return 1;
}
