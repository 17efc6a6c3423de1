#include "guest.h"

static int ticks;
static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Add(&ticks, 1);
}

int main(void) {
  Handle(SIGALRM, Tick, SA_RESTART);
  struct itimerval timer = {{0, 2000}, {0, 2000}};
  Fact(setitimer(ITIMER_REAL, &timer, NULL) == 0, "a timer every 2 ms");
  for (volatile int i = 0; Load(&ticks) < 20; ++i) {
  }
  Fact(true, "20 ticks in a loop without system calls");
  while (Load(&ticks) < 30) pause();
  Fact(true, "10 more in pause");
  struct itimerval old;
  memset(&timer, 0, sizeof(timer));
  setitimer(ITIMER_REAL, &timer, &old);
  Fact(old.it_interval.tv_usec == 2000, "stopped, the interval was told");
  Handle(SIGVTALRM, Tick, SA_RESTART);
  Handle(SIGPROF, Tick, SA_RESTART);
  ticks = 0;
  timer.it_interval.tv_usec = timer.it_value.tv_usec = 4000;
  setitimer(ITIMER_VIRTUAL, &timer, NULL);
  while (Load(&ticks) < 3) {
  }
  memset(&timer, 0, sizeof(timer));
  setitimer(ITIMER_VIRTUAL, &timer, NULL);
  Fact(true, "a virtual timer ticks while computing");
  ticks = 0;
  timer.it_interval.tv_usec = timer.it_value.tv_usec = 4000;
  setitimer(ITIMER_PROF, &timer, NULL);
  while (Load(&ticks) < 3) {
  }
  memset(&timer, 0, sizeof(timer));
  setitimer(ITIMER_PROF, &timer, NULL);
  Fact(true, "a profiling timer too");
  ticks = 0;
  Fact(alarm(100) == 0 && alarm(0) >= 99, "alarm set and taken back");
  return Done();
}
