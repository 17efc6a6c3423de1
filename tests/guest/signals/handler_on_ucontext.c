// Signals arrive while the program runs on stacks of its own making (makecontext, swapcontext).
#include "guest.h"

static ucontext_t main_context;
static ucontext_t contexts[2];
static char stacks[2][65536];
static int ticks;
static int switches;
static bool on_own_stack = true;

static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Add(&ticks, 1);
}

static void Run(int self) {
  volatile double value = self + 0.5;
  for (int i = 0; i < 2000 || Load(&ticks) < 10; ++i) {
    on_own_stack = on_own_stack && (char*)&value > stacks[self] &&
                   (char*)&value < stacks[self] + sizeof(stacks[self]) && value == self + 0.5;
    ++switches;
    swapcontext(&contexts[self], &contexts[1 - self]);
    if (Load(&ticks) >= 10 && i >= 2000) break;
  }
  swapcontext(&contexts[self], &main_context);
}

int main(void) {
  Handle(SIGALRM, Tick, SA_RESTART);
  for (int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
    contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], (void (*)(void))Run, 1, i);
  }
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  swapcontext(&main_context, &contexts[0]);
  Fact(switches >= 4000, "at least 4000 switches");
  Fact(ticks >= 10, "at least 10 signals meanwhile");
  Fact(on_own_stack, "always on its own stack");
  return Done();
}
