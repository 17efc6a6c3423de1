#include "guest.h"

static int ticks;
static int wrong;
static pid_t wanted_thread;
static int thread_ready;
static int leave;

static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  if (info->si_code != SI_TIMER || info->si_value.sival_int != 99) Add(&wrong, 1);
  if (wanted_thread != 0 && syscall(SYS_gettid) != wanted_thread) Add(&wrong, 1);
  Add(&ticks, 1);
}

static void* Target(void* argument) {
  *(pid_t*)argument = (pid_t)syscall(SYS_gettid);
  Store(&thread_ready, 1);
  while (!Load(&leave)) {
  }
  return NULL;
}

int main(void) {
  Handle(SIGRTMIN, Tick, SA_RESTART);
  struct sigevent event;
  memset(&event, 0, sizeof(event));
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN;
  event.sigev_value.sival_int = 99;
  timer_t timer;
  Fact(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "SIGEV_SIGNAL timer");
  struct itimerspec every = {{0, 2000000}, {0, 2000000}};
  timer_settime(timer, 0, &every, NULL);
  while (Load(&ticks) < 10) pause();
  struct itimerspec left;
  timer_gettime(timer, &left);
  Fact(left.it_interval.tv_nsec == 2000000 && left.it_value.tv_nsec <= 2000000, "timer_gettime");
  Fact(timer_delete(timer) == 0, "deleted");
  Fact(wrong == 0, "SI_TIMER with the value");
  pid_t id = 0;
  pthread_t thread = Start(Target, &id);
  WaitUntil(&thread_ready, 1);
  wanted_thread = id;
  event.sigev_notify = SIGEV_THREAD_ID;
  event._sigev_un._tid = id;
  Store(&ticks, 0);
  Fact(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "SIGEV_THREAD_ID timer");
  timer_settime(timer, 0, &every, NULL);
  while (Load(&ticks) < 10) SleepMs(1);
  timer_delete(timer);
  Store(&leave, 1);
  pthread_join(thread, NULL);
  Fact(wrong == 0, "10 ticks, all in the chosen thread");
  return Done();
}
