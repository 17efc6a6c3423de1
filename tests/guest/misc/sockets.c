#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "guest.h"

static int listener;

static void* Serve(void* argument) {
  for (int i = 0; i < 10; ++i) {
    const int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char text[64];
    const ssize_t got = recv(peer, text, sizeof(text), 0);
    for (ssize_t j = 0; j < got; ++j) text[j] = (char)(text[j] + 1);
    if (send(peer, text, (size_t)got, 0) != got) break;
    close(peer);
  }
  return argument;
}

int main(void) {
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof(address);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, length) != 0 ||
      listen(listener, 10) != 0)
    Skip("no loopback network");
  getsockname(listener, (struct sockaddr*)&address, &length);
  pthread_t server = Start(Serve, NULL);
  int good = 0;
  for (int i = 0; i < 10; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    char text[8] = "HAL";
    if (connect(fd, (struct sockaddr*)&address, sizeof(address)) != 0) {
      if (i == 0) Skip("no loopback network");
      break;
    }
    good += send(fd, text, 3, 0) == 3 && recv(fd, text, sizeof(text), MSG_WAITALL) == 3 &&
            memcmp(text, "IBM", 3) == 0;
    close(fd);
  }
  pthread_join(server, NULL);
  Fact(good == 10, "10 connections over loopback");
  // A descriptor passed over a socket pair to a child.
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    if (recvmsg(pair[1], &message, 0) != 1) _exit(1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    _exit(write(fd, "passed", 6) == 6 ? 0 : 2);
  }
  int ends[2];
  if (pipe(ends) != 0) return 1;
  char byte = 'x';
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  memset(control, 0, sizeof(control));
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &ends[1], sizeof(int));
  Fact(sendmsg(pair[0], &message, 0) == 1, "descriptor sent");
  char text[8];
  Fact(read(ends[0], text, 6) == 6 && memcmp(text, "passed", 6) == 0, "and used by the child");
  Fact(Reap(child) == 0, "child done");
  return Done();
}
