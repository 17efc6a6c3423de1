#include <poll.h>
#include <sys/signalfd.h>

#include "guest.h"

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  struct signalfd_siginfo info;
  Fact(read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN, "nothing yet");
  kill(getpid(), SIGUSR1);
  Fact(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1 &&
           (pid_t)info.ssi_pid == getpid(),
       "SIGUSR1 read");
  const pid_t child = fork();
  if (child == 0) _exit(3);
  struct pollfd poller = {fd, POLLIN, 0};
  int got;
  while ((got = poll(&poller, 1, 10000)) == -1 && errno == EINTR) {
  }
  Fact(got == 1, "poll wakes");
  Fact(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGCHLD &&
           (pid_t)info.ssi_pid == child && info.ssi_status == 3 && info.ssi_code == CLD_EXITED,
       "SIGCHLD of the child with its status");
  Reap(child);
  return Done();
}
