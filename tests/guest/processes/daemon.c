#include "guest.h"

int main(void) {
  int* shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t child = fork();
  if (child == 0) {
    if (daemon(0, 0) != 0) _exit(1);
    // Here is the grandchild, in a session of its own, in /, without a terminal.
    char path[PATH_MAX];
    char byte;
    const bool good = getsid(0) == getpid() && getcwd(path, sizeof(path)) != NULL &&
                      strcmp(path, "/") == 0 && read(0, &byte, 1) == 0;
    Store(shared, good ? 1 : 2);
    _exit(0);
  }
  Fact(Reap(child) == 0, "the foreground process ended with 0");
  for (int i = 0; i < 10000 && Load(shared) == 0; ++i) SleepMs(1);
  Fact(Load(shared) == 1, "the daemon runs, as it should");
  return Done();
}
