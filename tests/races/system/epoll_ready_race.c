// Who finds a timer ready by epoll comes after who set it.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "race.h"

static int timer, poll_descriptor;
int value;

static void* Sets(void* argument) {
  const struct itimerspec soon = {.it_value = {0, 20000000}};
  Check(timerfd_settime(timer, 0, &soon, NULL) == 0);
  value = 1;  // [a]
  Escape(&value);
  return argument;
}

static void* Waits(void* argument) {
  struct epoll_event event;
  Check(epoll_wait(poll_descriptor, &event, 1, -1) == 1);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  poll_descriptor = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  Check(epoll_ctl(poll_descriptor, EPOLL_CTL_ADD, timer, &event) == 0);
  RunTwo(Sets, Waits);
  return Done();
}
