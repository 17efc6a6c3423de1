// Beyond the stack limit: SIGSEGV with SEGV_MAPERR or SEGV_ACCERR, caught on another stack.
#include "guest.h"

static sigjmp_buf back;
static char alternate[65536];
static volatile uintptr_t fault_address;
static volatile uintptr_t deepest;

static void OnOverflow(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  fault_address = (uintptr_t)info->si_addr;
  siglongjmp(back, 1);
}

static int Recurse(volatile char* above) {
  volatile char frame[4000];
  frame[0] = above[0];
  deepest = (uintptr_t)&frame;
  if (frame[0] != 0) return 0;
  return Recurse(frame) + frame[0];
}

int main(void) {
  const struct rlimit small = {1 << 20, RLIM_INFINITY};
  struct rlimit old;
  getrlimit(RLIMIT_STACK, &old);
  struct rlimit limit = {small.rlim_cur, old.rlim_max};
  Fact(setrlimit(RLIMIT_STACK, &limit) == 0, "stack limited to 1 MiB");
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate), .ss_flags = 0};
  sigaltstack(&stack, NULL);
  Handle(SIGSEGV, OnOverflow, SA_ONSTACK);
  for (int i = 0; i < 3; ++i) {
    volatile char start[1] = {0};
    if (sigsetjmp(back, 1) == 0) {
      Recurse(start);
    } else {
      Fact((uintptr_t)start - fault_address > 900000, "overflow after most of a MiB, caught");
      Fact(deepest - fault_address < 3 * kPage, "at the stack's end");
    }
  }
  return Done();
}
