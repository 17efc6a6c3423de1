// Who receives what was sent over a connection that is closed at both ends by now comes after who
// sent it.
// CLEAN
#include "listening_socket.h"

int value;

static void* Serves(void* argument) {
  const int served = accept(listening, NULL, NULL);
  char byte;
  while (recv(served, &byte, 1, 0) > 0) continue;
  value = 1;
  Check(send(served, "x", 1, 0) == 1);
  close(served);
  return argument;
}

static void* Asks(void* argument) {
  const int client = Connect();
  Check(send(client, "x", 1, 0) == 1);
  Check(shutdown(client, SHUT_WR) == 0);
  usleep(300000);
  char byte;
  Check(recv(client, &byte, 1, 0) == 1);
  value++;
  return argument;
}

int main(void) {
  Listen();
  RunTwo(Serves, Asks);
  return Done();
}
