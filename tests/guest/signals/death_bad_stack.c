// A handler is due, but there is no stack to run it on.
#include "guest.h"

static void Never(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  _exit(1);
}

int main(void) {
  NoCore();
  Handle(SIGSEGV, Never, 0);
  Fact(true, "faulting without a stack");
  __asm__ volatile("mov $0x1000, %%esp\n\tmovl $1, 0" : : : "memory");
  return 1;
}
