#include "guest.h"

static pthread_t waiter;
static int ready;

static void* Send(void* argument) {
  (void)argument;
  WaitUntil(&ready, 1);
  kill(getpid(), SIGUSR1);
  return NULL;
}

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  waiter = pthread_self();
  pthread_t sender = Start(Send, NULL);
  Store(&ready, 1);
  int signal = 0;
  Fact(sigwait(&set, &signal) == 0 && signal == SIGUSR1, "sigwait took SIGUSR1 of the process");
  pthread_join(sender, NULL);
  const union sigval value = {.sival_int = 4711};
  sigqueue(getpid(), SIGRTMIN + 3, value);
  siginfo_t info;
  Fact(sigwaitinfo(&set, &info) == SIGRTMIN + 3 && info.si_value.sival_int == 4711 &&
           info.si_code == SI_QUEUE,
       "sigwaitinfo: value");
  const struct timespec soon = {0, 10000000};
  const int64_t start = NowNs();
  Fact(sigtimedwait(&set, &info, &soon) == -1 && errno == EAGAIN, "sigtimedwait: EAGAIN");
  Fact(NowNs() - start >= 10000000, "not before its time");
  pthread_kill(pthread_self(), SIGUSR1);
  Fact(sigtimedwait(&set, &info, &soon) == SIGUSR1 && info.si_code == SI_USER,
       "one pending is taken at once");
  return Done();
}
