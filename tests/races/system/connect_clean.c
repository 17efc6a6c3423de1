// Who accepts a connection comes after what was done before it was asked for.
// CLEAN
#include <netinet/in.h>
#include <sys/socket.h>

#include "race.h"

static struct sockaddr_in name = {.sin_family = AF_INET};
static int listening;
int value;

static void* Connects(void* argument) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  value = 1;
  Check(connect(client, (struct sockaddr*)&name, sizeof name) == 0);
  return argument;
}

static void* Accepts(void* argument) {
  Check(accept(listening, NULL, NULL) >= 0);
  value++;
  return argument;
}

int main(void) {
  socklen_t length = sizeof name;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listening = socket(AF_INET, SOCK_STREAM, 0);
  Check(bind(listening, (struct sockaddr*)&name, length) == 0 && listen(listening, 1) == 0);
  Check(getsockname(listening, (struct sockaddr*)&name, &length) == 0);
  RunTwo(Connects, Accepts);
  return Done();
}
