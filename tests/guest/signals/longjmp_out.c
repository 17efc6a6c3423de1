#include "guest.h"

static sigjmp_buf with_mask;
static jmp_buf without;

static void Jump(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  siglongjmp(with_mask, 7);
}
static void JumpRaw(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  longjmp(without, 8);
}

int main(void) {
  Handle(SIGUSR1, Jump, 0);
  volatile int good = 0;
  for (volatile int i = 0; i < 200; ++i) {
    const int value = sigsetjmp(with_mask, 1);
    if (value == 0) {
      raise(SIGUSR1);
    } else {
      good += value == 7;
    }
  }
  Fact(good == 200, "siglongjmp out of a handler 200 times");
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  Fact(!sigismember(&mask, SIGUSR1), "the mask was restored");
  Handle(SIGUSR2, JumpRaw, 0);
  if (_setjmp(without) == 0) raise(SIGUSR2);
  sigprocmask(SIG_SETMASK, NULL, &mask);
  Fact(sigismember(&mask, SIGUSR2) == 1, "longjmp without a mask leaves the signal blocked");
  return Done();
}
