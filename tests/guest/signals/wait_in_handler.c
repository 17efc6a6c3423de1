// Handlers may block: on a pipe, in nanosleep, on a futex that another thread wakes; others nest in
// them meanwhile.
#include "guest.h"

static int ends[2];
static volatile int steps;

static void Inner(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  ++steps;
}

static void Outer(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  char byte;
  const struct timespec time = {5, 0};
  if (nanosleep(&time, NULL) == -1 && errno == EINTR) ++steps;
  if (read(ends[0], &byte, 1) == 1) ++steps;
}

static void* Poke(void* argument) {
  while (steps == 0) {
    SleepMs(5);
    pthread_kill(*(pthread_t*)argument, SIGUSR2);
  }
  if (write(ends[1], "x", 1) != 1) _exit(1);
  return NULL;
}

int main(void) {
  static pthread_t self;
  self = pthread_self();
  if (pipe(ends) != 0) return 1;
  Handle(SIGUSR1, Outer, SA_RESTART);
  Handle(SIGUSR2, Inner, SA_RESTART);
  pthread_t thread = Start(Poke, &self);
  raise(SIGUSR1);
  pthread_join(thread, NULL);
  Fact(steps >= 3, "interrupted in nanosleep, went on in read, ended");
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  Fact(sigisemptyset(&mask), "the mask is as before");
  return Done();
}
