// A datagram that goes to another socket orders nothing.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "datagram_socket.h"

int value;
static struct Receiver first, second;

static void* Reader(void* argument) {
  Receive(&second);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  first = MakeReceiver();
  second = MakeReceiver();
  const pthread_t reader = Start(Reader, NULL);
  SendTo(&second);
  value = 2;  // [b]
  SendTo(&first);
  Join(reader);
  return Done();
}
