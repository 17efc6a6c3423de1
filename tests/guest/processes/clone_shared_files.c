// Processes that share descriptors but not memory.
#include "guest.h"

static volatile int value = 1;

int main(void) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const long child = syscall(SYS_clone, CLONE_FILES | CLONE_FS | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    value = 2;
    close(ends[0]);
    if (chdir("/tmp") != 0) _exit(1);
    _exit(open("/dev/null", O_RDONLY) == ends[0] ? 0 : 2);
  }
  Fact(Reap((pid_t)child) == 0, "child done");
  Fact(value == 1, "memory is not shared");
  char path[PATH_MAX];
  Fact(getcwd(path, sizeof(path)) != NULL && strcmp(path, "/tmp") == 0, "the working directory is");
  char byte;
  Fact(read(ends[0], &byte, 1) == 0, "descriptors are: the pipe's end is now /dev/null");
  return Done();
}
