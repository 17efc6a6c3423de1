// Who accepts a connection comes after what was done before it was asked for.
// CLEAN
#include "listening_socket.h"

int value;

static void* Connects(void* argument) {
  value = 1;
  Connect();
  return argument;
}

static void* Accepts(void* argument) {
  Accept();
  value++;
  return argument;
}

int main(void) {
  Listen();
  RunTwo(Connects, Accepts);
  return Done();
}
