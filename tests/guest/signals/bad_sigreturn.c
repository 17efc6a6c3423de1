// A handler that ruins its frame: the return fails and kills; here in a child.
#include "guest.h"

static void Ruin(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ucontext_t* user = context;
  user->uc_mcontext.gregs[REG_RIP] = (greg_t)0x8000000000000000;
}

static void RuinStack(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ucontext_t* user = context;
  user->uc_mcontext.gregs[REG_RSP] = 16;
}

int main(void) {
  NoCore();
  pid_t child = fork();
  if (child == 0) {
    Handle(SIGUSR1, Ruin, 0);
    raise(SIGUSR1);
    _exit(1);
  }
  int status = Reap(child);
  Fact(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a return to no address is SIGSEGV");
  child = fork();
  if (child == 0) {
    Handle(SIGUSR1, RuinStack, 0);
    raise(SIGUSR1);
    _exit(1);
  }
  status = Reap(child);
  Fact(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a return to no stack is SIGSEGV");
  child = fork();
  if (child == 0) {
    __asm__ volatile("mov $16, %%esp\n\tmov $15, %%eax\n\tsyscall" : : : "memory");
    _exit(1);
  }
  status = Reap(child);
  Fact(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
       "rt_sigreturn without a frame is SIGSEGV");
  return Done();
}
