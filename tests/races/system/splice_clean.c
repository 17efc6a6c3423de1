// splice into a socket orders as write does.
// CLEAN
#include <fcntl.h>
#include <sys/socket.h>

#include "race.h"

int value;
static int pipes[2], sockets[2];

static void* Receiver(void* argument) {
  char byte;
  Check(recv(sockets[0], &byte, 1, 0) == 1);
  value++;
  return argument;
}

int main(void) {
  Check(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const pthread_t receiver = Start(Receiver, NULL);
  Check(write(pipes[1], "x", 1) == 1);
  value = 1;
  Check(splice(pipes[0], NULL, sockets[1], NULL, 1, 0) == 1);
  Join(receiver);
  return value == 2 ? Done() : 1;
}
