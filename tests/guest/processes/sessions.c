#include "guest.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    Fact(getpgrp() != getpid(), "a child is in its parent's group");
    Fact(setsid() == getpid(), "setsid");
    Fact(getsid(0) == getpid() && getpgrp() == getpid(), "leader of session and group");
    Fact(setsid() == -1 && errno == EPERM, "a second time: EPERM");
    Fact(open("/dev/tty", O_RDONLY) == -1, "no terminal");
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (;;) pause();
    }
    Fact(setpgid(grandchild, grandchild) == 0 && getpgid(grandchild) == grandchild,
         "a group for a child");
    Fact(kill(-grandchild, SIGTERM) == 0, "a signal to the group");
    Fact(WTERMSIG(Reap(grandchild)) == SIGTERM, "it died");
    _exit(Done());
  }
  Fact(Reap(child) == 0, "child was content");
  Fact(setpgid(0, 999999) == -1 && errno == EPERM, "into no group: EPERM");
  Fact(getpgid(0) == getpgrp() && getsid(0) > 0, "getpgid and getsid of oneself");
  return Done();
}
