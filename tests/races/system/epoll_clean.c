// A pipe watched by epoll, duplicated and read through the duplicate.
// CLEAN
#include <sys/epoll.h>

#include "race.h"

int value;
static int ends[2];

static void* Receiver(void* argument) {
  const int watch = epoll_create1(0);
  const int copy = dup(ends[0]);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = copy};
  Check(epoll_ctl(watch, EPOLL_CTL_ADD, copy, &event) == 0);
  Check(epoll_wait(watch, &event, 1, 20000) == 1);
  char byte;
  Check(read(event.data.fd, &byte, 1) == 1);
  value++;
  return argument;
}

int main(void) {
  Check(pipe(ends) == 0);
  const pthread_t receiver = Start(Receiver, NULL);
  value = 1;
  Check(write(ends[1], "x", 1) == 1);
  Join(receiver);
  return value == 2 ? Done() : 1;
}
