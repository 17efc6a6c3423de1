// A signal for the process goes to a thread that does not block it.
#include "guest.h"

static int handled_by;
static int open_id;
static int leave;

static void Note(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Store(&handled_by, (int)syscall(SYS_gettid));
}

static void* Open(void* argument) {
  (void)argument;
  sigset_t set = SetOf(SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  Store(&open_id, (int)syscall(SYS_gettid));
  while (!Load(&leave)) SleepMs(1);
  return NULL;
}

static void* Closed(void* argument) {
  while (!Load(&leave)) SleepMs(1);
  return argument;
}

int main(void) {
  Handle(SIGUSR1, Note, SA_RESTART);
  sigset_t set = SetOf(SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_t threads[4];
  for (int i = 0; i < 3; ++i) threads[i] = Start(Closed, NULL);
  threads[3] = Start(Open, NULL);
  while (Load(&open_id) == 0) sched_yield();
  bool good = true;
  for (int i = 0; i < 20; ++i) {
    Store(&handled_by, 0);
    kill(getpid(), SIGUSR1);
    good = good && WaitUntil(&handled_by, open_id);
  }
  Store(&leave, 1);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good, "20 signals, all handled by the thread that does not block them");
  // Blocked by all: pending until somebody opens.
  Store(&handled_by, 0);
  kill(getpid(), SIGUSR1);
  Fact(Load(&handled_by) == 0, "blocked by all: pending");
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  Fact(Load(&handled_by) == getpid(), "handled by the first to open, at once");
  return Done();
}
