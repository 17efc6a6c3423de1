#include <poll.h>
#include <sys/select.h>

#include "guest.h"

int main(void) {
  int64_t start = NowNs();
  struct timespec time = {0, 10000000};
  Fact(nanosleep(&time, NULL) == 0 && NowNs() - start >= 10000000, "nanosleep");
  start = NowNs();
  Fact(usleep(10000) == 0 && NowNs() - start >= 10000000, "usleep");
  start = NowNs();
  Fact(poll(NULL, 0, 10) == 0 && NowNs() - start >= 10000000, "poll");
  start = NowNs();
  struct timeval wait = {0, 10000};
  Fact(select(0, NULL, NULL, NULL, &wait) == 0 && NowNs() - start >= 10000000, "select");
  Fact(wait.tv_usec == 0, "select counted the time down");
  clock_gettime(CLOCK_MONOTONIC, &time);
  start = NowNs();
  time.tv_nsec += 10000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_nsec -= 1000000000;
    ++time.tv_sec;
  }
  Fact(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == 0 &&
           NowNs() - start >= 9000000,
       "clock_nanosleep to a time");
  time.tv_nsec = 1000000000;
  Fact(nanosleep(&time, NULL) == -1 && errno == EINVAL, "a bad time: EINVAL");
  return Done();
}
