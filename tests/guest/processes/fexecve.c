#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) return atoi(argv[1]);
  char* arguments[] = {argv[0], (char*)"31", NULL};
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  pid_t child = fork();
  if (child == 0) {
    fexecve(fd, arguments, environ);
    _exit(1);
  }
  Fact(WEXITSTATUS(Reap(child)) == 31, "fexecve");
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return 1;
  path[length] = '\0';
  char* slash = strrchr(path, '/');
  *slash = '\0';
  const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  arguments[1] = (char*)"32";
  child = fork();
  if (child == 0) {
    syscall(SYS_execveat, directory, slash + 1, arguments, environ, 0);
    _exit(1);
  }
  Fact(WEXITSTATUS(Reap(child)) == 32, "execveat with a directory");
  Fact(syscall(SYS_execveat, fd, "", arguments, environ, 0) == -1 && errno == ENOENT,
       "an empty path without AT_EMPTY_PATH is ENOENT");
  Fact(syscall(SYS_execveat, 9999, "x", arguments, environ, 0) == -1 && errno == EBADF,
       "no directory: EBADF");
  // A program in memory only.
  const int memory = memfd_create("program", 0);
  char buffer[65536];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
    if (write(memory, buffer, (size_t)got) != got) return 1;
  }
  char name[64];
  snprintf(name, sizeof(name), "/proc/self/fd/%d", memory);
  const int reader = open(name, O_RDONLY);
  close(memory);
  arguments[1] = (char*)"33";
  child = fork();
  if (child == 0) {
    fexecve(reader, arguments, environ);
    _exit(1);
  }
  Fact(WEXITSTATUS(Reap(child)) == 33, "a program in a memfd");
  return Done();
}
