// sigsuspend, ppoll and pselect open the mask and wait in one step: a signal sent before is not
// lost.
#include <poll.h>
#include <sys/select.h>

#include "guest.h"

static int calls;
static void Count(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Add(&calls, 1);
}

int main(void) {
  Handle(SIGUSR1, Count, SA_RESTART);
  sigset_t set = SetOf(SIGUSR1);
  sigset_t open;
  sigprocmask(SIG_BLOCK, &set, &open);
  int good = 0;
  const struct timespec limit = {5, 0};
  for (int i = 0; i < 50; ++i) {
    raise(SIGUSR1);
    if (Load(&calls) != i * 3) break;
    good += sigsuspend(&open) == -1 && errno == EINTR && Load(&calls) == i * 3 + 1;
    raise(SIGUSR1);
    good += ppoll(NULL, 0, &limit, &open) == -1 && errno == EINTR && Load(&calls) == i * 3 + 2;
    raise(SIGUSR1);
    good += pselect(0, NULL, NULL, NULL, &limit, &open) == -1 && errno == EINTR &&
            Load(&calls) == i * 3 + 3;
  }
  Fact(good == 150, "50 rounds of sigsuspend, ppoll and pselect");
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  Fact(sigismember(&mask, SIGUSR1) == 1, "the old mask is back");
  const struct timespec none = {0, 0};
  Fact(ppoll(NULL, 0, &none, &open) == 0, "ppoll without a signal times out");
  return Done();
}
