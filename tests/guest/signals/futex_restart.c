#include <linux/futex.h>

#include "guest.h"

static int word;
static int calls;
static int begun;
static pthread_t main_thread;

static void Count(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Add(&calls, 1);
}

static void* Signal(void* argument) {
  const bool wake = argument != NULL;
  const int before = Load(&calls);
  WaitUntil(&begun, 1);
  SleepMs(10);
  pthread_kill(main_thread, SIGUSR1);
  WaitUntil(&calls, before + 1);
  SleepMs(10);
  if (wake) {
    Store(&word, 1);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
  }
  return NULL;
}

int main(void) {
  main_thread = pthread_self();
  Handle(SIGUSR1, Count, 0);
  pthread_t helper = Start(Signal, NULL);
  Store(&begun, 1);
  Fact(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINTR,
       "futex wait is EINTR");
  pthread_join(helper, NULL);
  Store(&begun, 0);
  Handle(SIGUSR1, Count, SA_RESTART);
  helper = Start(Signal, &word);
  Store(&begun, 1);
  Fact(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0,
       "SA_RESTART: goes on until woken");
  pthread_join(helper, NULL);
  Store(&begun, 0);
  Store(&word, 0);
  const struct timespec timeout = {5, 0};
  helper = Start(Signal, NULL);
  Store(&begun, 1);
  Fact(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &timeout, NULL, 0) == -1 && errno == EINTR,
       "with a time limit it is EINTR, SA_RESTART or not");
  pthread_join(helper, NULL);
  return Done();
}
