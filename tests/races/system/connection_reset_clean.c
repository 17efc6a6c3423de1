// Who hears that a connection was reset, or a pipe has no reader any more, comes after that.
// CLEAN
#include <errno.h>
#include <signal.h>

#include "listening_socket.h"

int before_reset, before_end;
static int client, served, ends[2];

static void* Ends(void* argument) {
  usleep(50000);
  before_reset = 1;
  const struct linger at_once = {.l_onoff = 1};
  Check(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  close(client);
  before_end = 1;
  close(ends[0]);
  return argument;
}

static void* Hears(void* argument) {
  char byte = 0;
  Check(recv(served, &byte, 1, 0) < 0 && errno == ECONNRESET);
  before_reset++;
  while (write(ends[1], &byte, 1) == 1) usleep(1000);
  Check(errno == EPIPE);
  before_end++;
  return argument;
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  Check(pipe(ends) == 0);
  Listen();
  client = Connect();
  served = accept(listening, NULL, NULL);
  Check(served >= 0);
  RunTwo(Ends, Hears);
  return Done();
}
