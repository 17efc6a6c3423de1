// A program whose file is deleted while it runs goes on, and forks.
#include "guest.h"

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    char path[PATH_MAX] = "";
    if (unlink(argv[1]) != 0) return 1;
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    Fact(length > 10 && strcmp(path + length - 10, " (deleted)") == 0, "/proc/self/exe says so");
    const pid_t child = fork();
    if (child == 0) _exit(6);
    Fact(WEXITSTATUS(Reap(child)) == 6, "it can fork");
    char* arguments[] = {argv[0], NULL};
    Fact(execv(argv[1], arguments) == -1 && errno == ENOENT, "but not be executed again");
    return Done();
  }
  char path[] = "/tmp/guest-XXXXXX";
  const int copy = mkostemp(path, O_CLOEXEC);
  const int source = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  char buffer[65536];
  ssize_t got;
  while ((got = read(source, buffer, sizeof(buffer))) > 0) {
    if (write(copy, buffer, (size_t)got) != got) return 1;
  }
  fchmod(copy, 0700);
  close(copy);
  const pid_t child = fork();
  if (child == 0) {
    char* arguments[] = {path, path, NULL};
    execv(path, arguments);
    _exit(99);
  }
  Fact(Reap(child) == 0, "the copy was content");
  return Done();
}
