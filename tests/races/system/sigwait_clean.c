// A signal sent to a thread that waits for it: by sigwait, sigtimedwait, and a signal descriptor.
// CLEAN
// BUILD O0 O2 static
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "race.h"

int values[3];
static sigset_t awaited;

static sigset_t Only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

static void* Waits(void* argument) {
  int signal = 0;
  sigset_t set = Only(SIGUSR1);
  Check(sigwait(&set, &signal) == 0 && signal == SIGUSR1);
  values[0]++;
  const struct timespec limit = {60, 0};
  set = Only(SIGUSR2);
  Check(sigtimedwait(&set, NULL, &limit) == SIGUSR2);
  values[1]++;
  set = Only(SIGRTMIN);
  const int descriptor = signalfd(-1, &set, 0);
  struct signalfd_siginfo received;
  Check(read(descriptor, &received, sizeof received) == sizeof received);
  Check(received.ssi_signo == (unsigned)SIGRTMIN && received.ssi_int == 7);
  values[2]++;
  return argument;
}

int main(void) {
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGUSR1);
  sigaddset(&awaited, SIGUSR2);
  sigaddset(&awaited, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &awaited, NULL);
  const pthread_t waiter = Start(Waits, NULL);
  values[0] = 1;
  pthread_kill(waiter, SIGUSR1);
  usleep(50000);
  values[1] = 1;
  kill(getpid(), SIGUSR2);
  usleep(50000);
  values[2] = 1;
  const union sigval value = {.sival_int = 7};
  pthread_sigqueue(waiter, SIGRTMIN, value);
  Join(waiter);
  return values[0] + values[1] + values[2] == 6 ? Done() : 1;
}
