// A duplicate of an event counter's descriptor is the same counter, one made by fcntl too.
// CLEAN
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>

#include "race.h"

int value;
static int counter;

static void* Receiver(void* argument) {
  const int copy = fcntl(counter, F_DUPFD, 50);
  uint64_t count = 0;
  Check(read(copy, &count, sizeof count) == sizeof count);
  value++;
  close(copy);
  return argument;
}

int main(void) {
  counter = eventfd(0, 0);
  const pthread_t receiver = Start(Receiver, NULL);
  value = 1;
  Check(eventfd_write(counter, 1) == 0);
  Join(receiver);
  return value == 2 ? Done() : 1;
}
