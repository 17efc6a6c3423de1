#include "guest.h"

enum { kThreads = 6 };
static pid_t ids[kThreads];
static int counts[kThreads];
static int wrong;
static int ready;
static int leave;
static __thread int self = -1;

static void Count(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  if (self < 0 || info->si_code != SI_TKILL || syscall(SYS_gettid) != ids[self]) {
    Add(&wrong, 1);
  } else {
    Add(&counts[self], 1);
  }
}

static void* Wait(void* argument) {
  self = (int)(intptr_t)argument;
  ids[self] = (pid_t)syscall(SYS_gettid);
  Add(&ready, 1);
  while (!Load(&leave)) {
    if (self % 2 == 0) SleepMs(1);
  }
  return NULL;
}

int main(void) {
  Handle(SIGUSR1, Count, SA_RESTART);
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i) threads[i] = Start(Wait, (void*)i);
  WaitUntil(&ready, kThreads);
  bool delivered = true;
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < kThreads; ++i) {
      syscall(SYS_tgkill, getpid(), ids[i], SIGUSR1);
      delivered = delivered && WaitUntil(&counts[i], round);
    }
  }
  Store(&leave, 1);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  Fact(delivered, "20 signals to each of 6 threads, sleeping and spinning");
  Fact(wrong == 0, "each handled by the thread it was sent to");
  Fact(syscall(SYS_tgkill, getpid(), 0x3fffffff, SIGUSR1) == -1 && errno == ESRCH,
       "no such thread: ESRCH");
  return Done();
}
