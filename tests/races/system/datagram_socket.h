// Sockets for datagrams at an address of this machine.
#ifndef TRAPLINE_TESTS_RACES_SYSTEM_DATAGRAM_SOCKET_H_
#define TRAPLINE_TESTS_RACES_SYSTEM_DATAGRAM_SOCKET_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include "race.h"

struct Receiver {
  int socket;
  struct sockaddr_in name;
};

__attribute__((unused)) static struct Receiver MakeReceiver(void) {
  struct Receiver receiver = {.socket = socket(AF_INET, SOCK_DGRAM, 0),
                              .name = {.sin_family = AF_INET}};
  socklen_t length = sizeof receiver.name;
  receiver.name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Check(bind(receiver.socket, (struct sockaddr*)&receiver.name, length) == 0);
  Check(getsockname(receiver.socket, (struct sockaddr*)&receiver.name, &length) == 0);
  return receiver;
}

__attribute__((unused)) static void Receive(const struct Receiver* receiver) {
  char byte;
  Check(recv(receiver->socket, &byte, 1, 0) == 1);
}

__attribute__((unused)) static void SendTo(struct Receiver* receiver) {
  Check(sendto(receiver->socket, "x", 1, 0, (struct sockaddr*)&receiver->name,
               sizeof receiver->name) == 1);
}

#endif  // TRAPLINE_TESTS_RACES_SYSTEM_DATAGRAM_SOCKET_H_
