#include "guest.h"

static char alternate[65536];
static volatile bool on_alternate;
static volatile int flags_inside;
static volatile int change_error;

static bool Inside(const volatile void* p) {
  return (const volatile char*)p >= alternate &&
         (const volatile char*)p < alternate + sizeof(alternate);
}

static void Look(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  volatile char local = 0;
  on_alternate = Inside(&local);
  stack_t now;
  sigaltstack(NULL, &now);
  flags_inside = now.ss_flags;
  stack_t other = {.ss_sp = alternate, .ss_size = sizeof(alternate), .ss_flags = 0};
  change_error = sigaltstack(&other, NULL) == 0 ? 0 : errno;
  const ucontext_t* user = context;
  if (user->uc_stack.ss_sp != (on_alternate ? alternate : user->uc_stack.ss_sp))
    Fact(false, "uc_stack");
}

static void* Thread(void* argument) {
  (void)argument;
  stack_t now;
  sigaltstack(NULL, &now);
  return (void*)(intptr_t)(now.ss_flags == SS_DISABLE);
}

int main(void) {
  stack_t now;
  Fact(sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE, "none to begin with");
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate), .ss_flags = 0};
  Fact(sigaltstack(&stack, NULL) == 0, "set");
  Fact(sigaltstack(NULL, &now) == 0 && now.ss_sp == alternate && now.ss_size == sizeof(alternate) &&
           now.ss_flags == 0,
       "told back");
  Handle(SIGUSR1, Look, SA_ONSTACK);
  raise(SIGUSR1);
  Fact(on_alternate, "SA_ONSTACK: the handler runs on it");
  Fact(flags_inside == SS_ONSTACK, "SS_ONSTACK inside");
  Fact(change_error == EPERM, "changing it inside is EPERM");
  Handle(SIGUSR1, Look, 0);
  raise(SIGUSR1);
  Fact(!on_alternate, "without SA_ONSTACK: on the normal stack");
  stack.ss_size = 100;
  Fact(sigaltstack(&stack, NULL) == -1 && errno == ENOMEM, "too small is ENOMEM");
  stack.ss_flags = SS_DISABLE;
  Fact(sigaltstack(&stack, NULL) == 0, "disabled");
  Handle(SIGUSR1, Look, SA_ONSTACK);
  raise(SIGUSR1);
  Fact(!on_alternate, "disabled: on the normal stack");
  stack.ss_size = sizeof(alternate);
  stack.ss_flags = 0;
  sigaltstack(&stack, NULL);
  void* disabled;
  pthread_join(Start(Thread, NULL), &disabled);
  Fact(disabled != NULL, "a new thread has none");
  const pid_t child = fork();
  if (child == 0) {
    sigaltstack(NULL, &now);
    _exit(now.ss_sp == alternate && now.ss_flags == 0);
  }
  Fact(WEXITSTATUS(Reap(child)) == 1, "a forked child keeps it");
  return Done();
}
