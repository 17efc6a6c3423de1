// SA_RESTART: read goes on. Without: EINTR. poll and nanosleep always EINTR.
#include <poll.h>

#include "guest.h"

static int ends[2];
static int calls;
static pthread_t main_thread;
static int step;

static void Count(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Add(&calls, 1);
}

// Signals main until the handler has run, then gives read a byte.
static void* Signal(void* argument) {
  const bool feed = argument != NULL;
  const int before = Load(&calls);
  while (Load(&step) == 0) sched_yield();
  SleepMs(10);
  pthread_kill(main_thread, SIGUSR1);
  WaitUntil(&calls, before + 1);
  SleepMs(5);
  if (feed && write(ends[1], "x", 1) != 1) Fact(false, "fed");
  return NULL;
}

static pthread_t helper;
static void Begin(bool feed) {
  Store(&step, 0);
  helper = Start(Signal, feed ? &step : NULL);
  Store(&step, 1);
}
static void End(void) { pthread_join(helper, NULL); }

int main(void) {
  main_thread = pthread_self();
  if (pipe(ends) != 0) return 1;
  char byte = 0;
  Handle(SIGUSR1, Count, SA_RESTART);
  Begin(true);
  Fact(read(ends[0], &byte, 1) == 1 && byte == 'x', "SA_RESTART: read goes on");
  End();
  Begin(false);
  struct pollfd poller = {ends[0], POLLIN, 0};
  Fact(poll(&poller, 1, 5000) == -1 && errno == EINTR, "SA_RESTART: poll is EINTR all the same");
  End();
  Begin(false);
  struct timespec time = {5, 0};
  struct timespec left = {0, 0};
  Fact(nanosleep(&time, &left) == -1 && errno == EINTR,
       "SA_RESTART: nanosleep is EINTR all the same");
  Fact(left.tv_sec == 4 && left.tv_nsec > 0, "and tells what is left");
  End();
  Handle(SIGUSR1, Count, 0);
  Begin(false);
  Fact(read(ends[0], &byte, 1) == -1 && errno == EINTR, "without: read is EINTR");
  End();
  Begin(false);
  Fact(waitpid(-1, NULL, 0) == -1 && errno == ECHILD, "no child to wait for");
  Fact(pause() == -1 && errno == EINTR, "pause is EINTR");
  End();
  Begin(false);
  Fact(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left) == EINTR, "clock_nanosleep is EINTR");
  End();
  Fact(calls == 6, "the handler ran once each time");
  return Done();
}
