// A socket that waits for connections to this machine.
#ifndef TRAPLINE_TESTS_RACES_SYSTEM_LISTENING_SOCKET_H_
#define TRAPLINE_TESTS_RACES_SYSTEM_LISTENING_SOCKET_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include "race.h"

static struct sockaddr_in listening_name = {.sin_family = AF_INET};
static int listening;

__attribute__((unused)) static void Bind(void) {
  socklen_t length = sizeof listening_name;
  listening_name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listening = socket(AF_INET, SOCK_STREAM, 0);
  Check(bind(listening, (struct sockaddr*)&listening_name, length) == 0);
  Check(getsockname(listening, (struct sockaddr*)&listening_name, &length) == 0);
}

__attribute__((unused)) static void Listen(void) {
  Bind();
  Check(listen(listening, 1) == 0);
}

// The connected socket, below 0 if nobody listens.
__attribute__((unused)) static int TryToConnect(void) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(client, (struct sockaddr*)&listening_name, sizeof listening_name) == 0) return client;
  close(client);
  return -1;
}

__attribute__((unused)) static int Connect(void) {
  const int client = TryToConnect();
  Check(client >= 0);
  return client;
}

__attribute__((unused)) static void Accept(void) { Check(accept(listening, NULL, NULL) >= 0); }

#endif  // TRAPLINE_TESTS_RACES_SYSTEM_LISTENING_SOCKET_H_
