// epoll_ctl hands a pointer to whoever gets it from epoll_wait; poll tells of a byte in a pipe.
// CLEAN
#include <poll.h>
#include <sys/epoll.h>

#include "race.h"

int value, other_value;
static int watch, pipes[2], others[2];

static void* Receiver(void* argument) {
  struct epoll_event event;
  Check(epoll_wait(watch, &event, 1, 20000) == 1);
  ++*(int*)event.data.ptr;
  struct pollfd ready = {.fd = others[0], .events = POLLIN};
  Check(poll(&ready, 1, 20000) == 1);
  other_value++;
  return argument;
}

int main(void) {
  watch = epoll_create1(0);
  Check(pipe(pipes) == 0 && pipe(others) == 0);
  Check(write(pipes[1], "x", 1) == 1);
  const pthread_t receiver = Start(Receiver, NULL);
  value = 1;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &value};
  Check(epoll_ctl(watch, EPOLL_CTL_ADD, pipes[0], &event) == 0);
  other_value = 1;
  Check(write(others[1], "x", 1) == 1);
  Join(receiver);
  return value + other_value == 4 ? Done() : 1;
}
