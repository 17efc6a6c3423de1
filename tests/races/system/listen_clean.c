// Who connects comes after who listens; a socket that listens is found ready, and no longer accepts
// once it is shut down, after what made it so.
// CLEAN
#include <errno.h>
#include <poll.h>
#include <semaphore.h>

#include "listening_socket.h"

int before_listen, before_connect, before_shutdown;
static sem_t accepted;

static void* Client(void* argument) {
  int client;
  while ((client = TryToConnect()) < 0) usleep(10000);
  before_listen++;
  before_connect = 1;
  Connect();
  sem_wait(&accepted);
  before_shutdown = 1;
  Check(shutdown(listening, SHUT_RDWR) == 0);
  return argument;
}

static void* Server(void* argument) {
  usleep(50000);
  before_listen = 1;
  Check(listen(listening, 4) == 0);
  Accept();
  struct pollfd ready = {.fd = listening, .events = POLLIN};
  Check(poll(&ready, 1, -1) == 1);
  before_connect++;
  Accept();
  sem_post(&accepted);
  Check(accept(listening, NULL, NULL) < 0 && errno == EINVAL);
  before_shutdown++;
  return argument;
}

int main(void) {
  Bind();
  sem_init(&accepted, 0, 0);
  RunTwo(Client, Server);
  return Done();
}
