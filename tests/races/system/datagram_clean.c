// Datagrams hand over, from a socket that is connected, by an address and by a message.
// CLEAN
#include <poll.h>

#include "datagram_socket.h"

int value;
static struct Receiver there, back;

static void* Other(void* argument) {
  Receive(&there);
  value++;
  SendTo(&back);
  struct pollfd ready = {.fd = there.socket, .events = POLLIN};
  Check(poll(&ready, 1, -1) == 1);
  value++;
  return argument;
}

int main(void) {
  there = MakeReceiver();
  back = MakeReceiver();
  const pthread_t other = Start(Other, NULL);
  const int connected = socket(AF_INET, SOCK_DGRAM, 0);
  Check(connect(connected, (struct sockaddr*)&there.name, sizeof there.name) == 0);
  value = 1;
  Check(send(connected, "x", 1, 0) == 1);
  Receive(&back);
  value++;
  struct iovec bytes = {.iov_base = "x", .iov_len = 1};
  const struct msghdr message = {.msg_name = &there.name,
                                 .msg_namelen = sizeof there.name,
                                 .msg_iov = &bytes,
                                 .msg_iovlen = 1};
  Check(sendmsg(back.socket, &message, 0) == 1);
  Join(other);
  return value == 4 ? Done() : 1;
}
