#include <sys/syscall.h>

#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool kept = fcntl(atoi(argv[1]), F_GETFD) == 0;
    const bool closed = fcntl(atoi(argv[2]), F_GETFD) == -1 && errno == EBADF;
    return kept && closed ? 12 : 1;
  }
  const int first = open("/dev/null", O_RDONLY);
  Fact(first == 3, "the first descriptor is 3");
  Fact(open("/dev/null", O_RDONLY) == 4 && dup(0) == 5, "then 4 and 5");
  close(4);
  Fact(dup(1) == 4, "the lowest free one is reused");
  Fact(dup2(1, 100) == 100 && fcntl(1, F_DUPFD, 50) == 50, "dup2 and F_DUPFD");
  Fact(close(200) == -1 && errno == EBADF, "closing what is not open: EBADF");
  fcntl(4, F_SETFD, FD_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    char* arguments[] = {argv[0], (char*)"5", (char*)"4", NULL};
    execv("/proc/self/exe", arguments);
    _exit(2);
  }
  Fact(WEXITSTATUS(Reap(child)) == 12, "close-on-exec closes, others stay");
  Fact(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range of all from 3");
  bool none = true;
  for (int i = 3; i < 1024; ++i) none = none && fcntl(i, F_GETFD) == -1;
  Fact(none, "none is open");
  Fact(open("/dev/null", O_RDONLY) == 3, "the next is 3 again");
  for (int i = 3; i < 1024; ++i) close(i);
  Fact(open("/dev/null", O_RDONLY) == 3, "closing each by hand does no harm");
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 10;
  setrlimit(RLIMIT_NOFILE, &limit);
  int opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) ++opened;
  Fact(opened == 6 && errno == EMFILE, "a limit of 10 leaves 6 more, then EMFILE");
  const pid_t last = fork();
  if (last == 0) _exit(3);
  Fact(WEXITSTATUS(Reap(last)) == 3, "fork works at the limit");
  return Done();
}
