// sigqueue hands a pointer to a handler that runs in another thread.
// CLEAN
#include <signal.h>

#include "race.h"

int value;
static volatile sig_atomic_t handled;

static void Handler(int signal, siginfo_t* info, void* context) {
  ++*(int*)info->si_value.sival_ptr;
  __atomic_store_n(&handled, 1, __ATOMIC_SEQ_CST);
}

static void* Waits(void* argument) {
  while (!__atomic_load_n(&handled, __ATOMIC_SEQ_CST)) usleep(1000);
  return argument;
}

int main(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = Handler};
  Check(sigaction(SIGUSR1, &action, NULL) == 0);
  const pthread_t waiter = Start(Waits, NULL);
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &mine, NULL);
  value = 1;
  const union sigval pointer = {.sival_ptr = &value};
  Check(sigqueue(getpid(), SIGUSR1, pointer) == 0);
  Join(waiter);
  return value == 2 ? Done() : 1;
}
