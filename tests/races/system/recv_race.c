// recv into a buffer that another thread writes.
// RACE write-write global:buffer store recv
// MAY-MISS shared: each place runs once
#include <sys/socket.h>

#include "race.h"

char buffer[8];
static int sockets[2];

static void* Receives(void* argument) {
  Check(recv(sockets[0], buffer, sizeof buffer, 0) == 4);  // [recv]
  return argument;
}

static void* Stores(void* argument) {
  buffer[2] = 'x';  // [store]
  return argument;
}

int main(void) {
  Check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  Check(send(sockets[1], "abcd", 4, 0) == 4);
  RunTwo(Receives, Stores);
  return Done();
}
