// An eventfd hands over; the receiver polls before it reads.
// CLEAN
#include <poll.h>
#include <sys/eventfd.h>

#include "race.h"

int value;
static int event;

static void* Sender(void* argument) {
  value = 1;
  Check(eventfd_write(event, 1) == 0);
  return argument;
}

static void* Receiver(void* argument) {
  struct pollfd ready = {event, POLLIN, 0};
  Check(poll(&ready, 1, 20000) == 1);
  eventfd_t count;
  Check(eventfd_read(event, &count) == 0);
  value++;
  return argument;
}

int main(void) {
  event = eventfd(0, 0);
  RunTwo(Sender, Receiver);
  return value == 2 ? Done() : 1;
}
