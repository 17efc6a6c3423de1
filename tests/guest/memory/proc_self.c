#include "guest.h"

int main(int argc, char** argv) {
  char path[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const char* base = strrchr(path, '/');
  const char* own = strrchr(argv[0], '/');
  Fact(length > 0 && base != NULL && strcmp(base, own != NULL ? own : argv[0]) == 0,
       "/proc/self/exe is this program");
  char text[4096];
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t got = read(fd, text, sizeof(text));
  close(fd);
  char* p = text;
  bool same = got > 0;
  for (int i = 0; i < argc && same; ++i) {
    same = strcmp(p, argv[i]) == 0;
    p += strlen(p) + 1;
  }
  Fact(same && p == text + got, "/proc/self/cmdline is its command line");
  fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  got = read(fd, text, sizeof(text) - 1);
  close(fd);
  text[got > 0 ? got - 1 : 0] = '\0';
  Fact(strncmp(text, base + 1, 15) == 0, "/proc/self/comm is its name: %s", text);
  Fact(strcmp(program_invocation_short_name, base + 1) == 0, "as argv[0] has it");
  fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  got = read(fd, text, sizeof(text));
  close(fd);
  extern char** environ;
  Fact(environ[0] == NULL || (got > 0 && strncmp(text, environ[0], strlen(environ[0])) == 0),
       "/proc/self/environ starts with the first variable");
  snprintf(text, sizeof(text), "/proc/%d/exe", getpid());
  char again[PATH_MAX] = "";
  Fact(readlink(text, again, sizeof(again) - 1) == length && strcmp(again, path) == 0,
       "/proc/PID/exe too");
  return Done();
}
