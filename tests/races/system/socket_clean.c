// A socket pair hands over, there and back, by send and recv, write and read.
// CLEAN
#include <sys/socket.h>

#include "race.h"

int value;
static int ends[2];

static void* Other(void* argument) {
  char byte;
  Check(recv(ends[1], &byte, 1, 0) == 1);
  value++;
  Check(write(ends[1], "y", 1) == 1);
  return argument;
}

int main(void) {
  Check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const pthread_t other = Start(Other, NULL);
  value = 1;
  Check(send(ends[0], "x", 1, 0) == 1);
  char byte;
  Check(read(ends[0], &byte, 1) == 1);
  value++;
  Join(other);
  return value == 3 ? Done() : 1;
}
