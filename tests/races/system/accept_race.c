// Who accepts a connection is not ordered after what is done once it is asked for.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include "listening_socket.h"

int value;

static void* Connects(void* argument) {
  Connect();
  value = 1;  // [a]
  Escape(&value);
  return argument;
}

static void* Accepts(void* argument) {
  Accept();
  value = 2;  // [b]
  return argument;
}

int main(void) {
  Listen();
  RunTwo(Connects, Accepts);
  return Done();
}
