// The end of a pipe or of a connection orders, too: read returns 0 after close and shutdown.
// CLEAN
#include <sys/socket.h>

#include "race.h"

static int ends[2], sockets[2];
int value;

static void* Giver(void* argument) {
  value = 1;
  close(ends[1]);
  char byte;
  Check(read(sockets[0], &byte, 1) == 0);
  value = 3;
  return argument;
}

static void* Taker(void* argument) {
  char byte;
  Check(read(ends[0], &byte, 1) == 0);
  value = 2;
  shutdown(sockets[1], SHUT_WR);
  return argument;
}

int main(void) {
  Check(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  RunTwo(Giver, Taker);
  return Done();
}
