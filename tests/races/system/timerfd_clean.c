// Who reads a timer's descriptor comes after who set the timer.
// CLEAN
// TSAN-DIFFERS it does not know that setting a timer orders
#include <stdint.h>
#include <sys/timerfd.h>

#include "race.h"

static int timer, value;

static void* Reader(void* argument) {
  uint64_t expirations;
  Check(read(timer, &expirations, sizeof expirations) == sizeof expirations);
  value++;
  return argument;
}

int main(void) {
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const pthread_t reader = Start(Reader, NULL);
  value = 1;
  const struct itimerspec soon = {.it_value = {0, 20000000}};
  Check(timerfd_settime(timer, 0, &soon, NULL) == 0);
  Join(reader);
  return value == 2 ? Done() : 1;
}
