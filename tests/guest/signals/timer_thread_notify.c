// SIGEV_THREAD: the library makes a thread for each expiry.
#include "guest.h"

static int calls;
static int wrong;
static pthread_t main_thread;

static void Notify(union sigval value) {
  if (value.sival_int != 12 || pthread_equal(pthread_self(), main_thread)) Add(&wrong, 1);
  Add(&calls, 1);
}

int main(void) {
  main_thread = pthread_self();
  struct sigevent event;
  memset(&event, 0, sizeof(event));
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = Notify;
  event.sigev_value.sival_int = 12;
  timer_t timer;
  Fact(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "SIGEV_THREAD timer");
  const struct itimerspec every = {{0, 3000000}, {0, 3000000}};
  timer_settime(timer, 0, &every, NULL);
  for (int i = 0; i < 10000 && Load(&calls) < 5; ++i) SleepMs(1);
  timer_delete(timer);
  Fact(Load(&calls) >= 5 && Load(&wrong) == 0, "5 calls in threads of their own");
  return Done();
}
