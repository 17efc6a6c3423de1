// The script's interpreter is this very program, which then shows its arguments.
#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "-interpreting as one") == 0) {
    Fact(argc == 5, "interpreter, argument, script, two more");
    char* slash = strrchr(argv[2], '/');
    Fact(slash != NULL && strcmp(slash, "/script") == 0, "the script's path");
    Fact(strcmp(argv[3], "first") == 0 && strcmp(argv[4], "second") == 0, "its arguments");
    char comm[32] = "";
    const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    const ssize_t got = read(fd, comm, sizeof(comm) - 1);
    close(fd);
    Fact(got == 7 && strcmp(comm, "script\n") == 0, "the process is named after the script");
    return Done();
  }
  char directory[] = "/tmp/guest-XXXXXX";
  if (mkdtemp(directory) == NULL) return 1;
  // A short name for the interpreter, as a line holds only 256 bytes.
  char link[64];
  char script[64];
  snprintf(link, sizeof(link), "%s/interpreter", directory);
  snprintf(script, sizeof(script), "%s/script", directory);
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return 1;
  self[length] = '\0';
  if (symlink(self, link) != 0) return 1;
  char line[128];
  const int size = snprintf(line, sizeof(line), "#! %s  -interpreting as one  \nbody\n", link);
  const int fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
  if (write(fd, line, (size_t)size) != size) return 1;
  close(fd);
  const pid_t child = fork();
  if (child == 0) {
    execl(script, "lost", "first", "second", (char*)NULL);
    _exit(9);
  }
  Fact(Reap(child) == 0, "the script ran");
  unlink(script);
  unlink(link);
  rmdir(directory);
  return Done();
}
