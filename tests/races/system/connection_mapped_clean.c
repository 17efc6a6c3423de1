// A server that listens for both families of addresses sees a client of IPv4 at a mapped one.
// CLEAN
#include <netinet/in.h>
#include <sys/socket.h>

#include "race.h"

int value;
static int client, served;

static void* Sends(void* argument) {
  usleep(50000);
  value = 1;
  Check(send(client, "x", 1, 0) == 1);
  return argument;
}

static void* Receives(void* argument) {
  char byte;
  Check(recv(served, &byte, 1, 0) == 1);
  value++;
  return argument;
}

int main(void) {
  struct sockaddr_in6 any = {.sin6_family = AF_INET6};
  socklen_t length = sizeof any;
  const int no = 0, listening = socket(AF_INET6, SOCK_STREAM, 0);
  Check(setsockopt(listening, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0);
  Check(bind(listening, (struct sockaddr*)&any, length) == 0 && listen(listening, 1) == 0);
  Check(getsockname(listening, (struct sockaddr*)&any, &length) == 0);
  const struct sockaddr_in name = {
      .sin_family = AF_INET, .sin_port = any.sin6_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  client = socket(AF_INET, SOCK_STREAM, 0);
  Check(connect(client, (const struct sockaddr*)&name, sizeof name) == 0);
  served = accept(listening, NULL, NULL);
  Check(served >= 0);
  RunTwo(Sends, Receives);
  return Done();
}
