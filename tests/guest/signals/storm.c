// Threads shower each other with signals while they compute, allocate and call.
#include "guest.h"

enum { kThreads = 4 };
static pthread_t threads[kThreads];
static int started;
static int stop;
static int sent;
static int received;
static int wrong;

static void Take(int signal, siginfo_t* info, void* context) {
  (void)context;
  if (signal != SIGRTMIN || info->si_value.sival_int != 5) Add(&wrong, 1);
  const int saved = errno;
  Add(&received, 1);
  errno = saved;
}

static void* Work(void* argument) {
  const int self = (int)(intptr_t)argument;
  Add(&started, 1);
  WaitUntil(&started, kThreads + 1);  // main too: then all handles are known
  for (int i = 0; i < 300; ++i) {
    const union sigval value = {.sival_int = 5};
    if (pthread_sigqueue(threads[(self + 1 + i % (kThreads - 1)) % kThreads], SIGRTMIN, value) == 0)
      Add(&sent, 1);
    void* block = malloc((size_t)(i * 37 % 5000 + 1));
    errno = 0;
    if (close(-1) != -1 || errno != EBADF) Add(&wrong, 1);
    free(block);
  }
  // Nobody leaves before all have sent, or the target would be gone.
  Add(&stop, 1);
  while (Load(&stop) != kThreads || Load(&received) != Load(&sent)) sched_yield();
  return NULL;
}

int main(void) {
  Handle(SIGRTMIN, Take, SA_RESTART);
  sigset_t set = SetOf(SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  for (intptr_t i = 0; i < kThreads; ++i) threads[i] = Start(Work, (void*)i);
  Add(&started, 1);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  Fact(sent == received && sent > 0, "every signal that was queued was handled");
  Fact(wrong == 0, "with its value, and errno undisturbed");
  return Done();
}
