// A program started with 0, 1 and 2 closed finds them closed.
#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    int good = 0;
    for (int i = 0; i < 3; ++i) good += fcntl(i, F_GETFD) == -1;
    good += open("/dev/null", O_RDWR) == 0;
    good += open("/dev/null", O_RDWR) == 1;
    good += open("/dev/null", O_RDWR) == 2;
    good += open("/dev/null", O_RDWR) == 3;
    return good;
  }
  const pid_t child = fork();
  if (child == 0) {
    char* arguments[] = {argv[0], (char*)"child", NULL};
    for (int i = 0; i < 3; ++i) close(i);
    execv("/proc/self/exe", arguments);
    _exit(99);
  }
  Fact(WEXITSTATUS(Reap(child)) == 7, "closed, and given out from the lowest on");
  return Done();
}
