// A handler sets the trap flag in the context it returns to, as a debugger inside the process does.
#include "guest.h"

static volatile int steps;
static volatile int wanted;
static volatile uintptr_t last_rip;
static volatile int forward;

static void Begin(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

static void Step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ucontext_t* user = context;
  const uintptr_t rip = (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
  forward += rip != last_rip && (user->uc_mcontext.gregs[REG_EFL] & 0x100) != 0;
  last_rip = rip;
  if (++steps == wanted) user->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
}

int main(void) {
  Handle(SIGUSR1, Begin, 0);
  Handle(SIGTRAP, Step, 0);
  wanted = 500;
  raise(SIGUSR1);
  volatile unsigned sum = 0;
  for (unsigned i = 0; i < 1000; ++i) sum += i;
  Fact(steps == 500, "500 single steps, then none");
  Fact(forward == 500, "each at another instruction, with the flag in its context");
  Fact(sum == 499500, "the stepped code was not disturbed");
  return Done();
}
