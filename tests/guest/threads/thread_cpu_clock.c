#include "guest.h"

static int go_on = 1;
static volatile unsigned long spins;

static void* Spin(void* argument) {
  while (Load(&go_on)) ++spins;
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  *(int64_t*)argument = used.tv_sec * 1000000000LL + used.tv_nsec;
  return NULL;
}

int main(void) {
  static int64_t used;
  pthread_t thread = Start(Spin, &used);
  clockid_t clock;
  Fact(pthread_getcpuclockid(thread, &clock) == 0, "clock of another thread");
  struct timespec time = {0, 0};
  for (int i = 0; i < 5000 && time.tv_sec == 0 && time.tv_nsec < 20000000; ++i) {
    SleepMs(1);
    clock_gettime(clock, &time);
  }
  Fact(time.tv_sec > 0 || time.tv_nsec >= 20000000, "it advances while the thread works");
  Store(&go_on, 0);
  pthread_join(thread, NULL);
  Fact(used >= 20000000, "the thread sees its own time");
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  struct timespec all;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
  Fact(all.tv_sec * 1000000000LL + all.tv_nsec >= used, "the process used at least as much");
  return Done();
}
