#include "guest.h"

static int values[64];
static volatile int count;
static bool codes_good = true;

static void Take(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  if (count < 64) values[count++] = info->si_value.sival_int;
  codes_good = codes_good && info->si_code == SI_QUEUE && info->si_pid == getpid() &&
               info->si_uid == getuid();
}

int main(void) {
  sigset_t set = SetOf(SIGRTMIN + 1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  Handle(SIGRTMIN + 1, Take, 0);
  for (int i = 0; i < 50; ++i) {
    const union sigval value = {.sival_int = i * i};
    if (sigqueue(getpid(), SIGRTMIN + 1, value) != 0) Fact(false, "queued");
  }
  Fact(count == 0, "held back");
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  Fact(count == 50, "50 queued, 50 delivered");
  bool ordered = true;
  for (int i = 0; i < 50; ++i) ordered = ordered && values[i] == i * i;
  Fact(ordered, "in order, each with its value");
  Fact(codes_good, "SI_QUEUE, si_pid, si_uid");
  count = 0;
  const union sigval pointer = {.sival_ptr = values};
  pthread_sigqueue(pthread_self(), SIGRTMIN + 1, pointer);
  Fact(count == 1, "pthread_sigqueue");
  return Done();
}
