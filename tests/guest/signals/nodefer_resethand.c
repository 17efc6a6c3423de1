#include "guest.h"

static volatile int depth;
static volatile int deepest;
static volatile int calls;

static void Nest(int signal, siginfo_t* info, void* context) {
  (void)info, (void)context;
  ++calls;
  if (++depth > deepest) deepest = depth;
  if (calls < 5) raise(signal);
  --depth;
}

int main(void) {
  Handle(SIGUSR1, Nest, 0);
  raise(SIGUSR1);
  Fact(calls == 5 && deepest == 1, "blocked in its own handler: one after the other");
  calls = deepest = 0;
  Handle(SIGUSR1, Nest, SA_NODEFER);
  raise(SIGUSR1);
  Fact(calls == 5 && deepest == 5, "SA_NODEFER: nested 5 deep");
  calls = 10;
  Handle(SIGUSR2, Nest, SA_RESETHAND);
  raise(SIGUSR2);
  struct sigaction action;
  sigaction(SIGUSR2, NULL, &action);
  Fact(calls == 11 && action.sa_handler == SIG_DFL, "SA_RESETHAND: the default afterwards");
  return Done();
}
