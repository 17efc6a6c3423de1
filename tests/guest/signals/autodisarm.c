#include "guest.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static char first[65536];
static char second[65536];
static bool good;

static void Handler(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  char local;
  stack_t now;
  sigaltstack(NULL, &now);
  const stack_t other = {.ss_sp = second, .ss_size = sizeof(second), .ss_flags = 0};
  good = &local > first && &local < first + sizeof(first) && now.ss_flags == SS_DISABLE &&
         sigaltstack(&other, NULL) == 0;
}

int main(void) {
  stack_t stack = {.ss_sp = first, .ss_size = sizeof(first), .ss_flags = (int)SS_AUTODISARM};
  Fact(sigaltstack(&stack, NULL) == 0, "an alternate stack with SS_AUTODISARM");
  Handle(SIGUSR1, Handler, SA_ONSTACK);
  raise(SIGUSR1);
  Fact(good, "inside the handler it is disarmed and may be changed");
  sigaltstack(NULL, &stack);
  Fact(stack.ss_sp == first && ((unsigned)stack.ss_flags & SS_AUTODISARM) != 0,
       "afterwards it is as before");
  return Done();
}
