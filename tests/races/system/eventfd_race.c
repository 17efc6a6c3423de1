// An eventfd written too early.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <sys/eventfd.h>

#include "race.h"

int value;
static int event;

static void* Sender(void* argument) {
  Check(eventfd_write(event, 1) == 0);
  value = 1;  // [a]
  return argument;
}

static void* Receiver(void* argument) {
  eventfd_t count;
  Check(eventfd_read(event, &count) == 0);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  event = eventfd(0, 0);
  RunTwo(Sender, Receiver);
  return Done();
}
