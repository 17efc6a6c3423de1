// A socket pair, and a value written after the message.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <sys/socket.h>

#include "race.h"

int value;
static int ends[2];

static void* Receiver(void* argument) {
  char byte;
  Check(recv(ends[1], &byte, 1, 0) == 1);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  Check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
  const pthread_t receiver = Start(Receiver, NULL);
  Check(send(ends[0], "x", 1, 0) == 1);
  value = 2;  // [b]
  Join(receiver);
  return Done();
}
