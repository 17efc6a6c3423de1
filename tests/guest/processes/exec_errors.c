#include "guest.h"

static char directory[] = "/tmp/guest-XXXXXX";
static char path[64];

static const char* Make(const char* contents, size_t size, mode_t mode) {
  snprintf(path, sizeof(path), "%s/file", directory);
  unlink(path);
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
  if (fd < 0 || write(fd, contents, size) != (ssize_t)size) _exit(1);
  fchmod(fd, mode);
  close(fd);
  return path;
}

static bool Fails(const char* file, int error) {
  char* arguments[] = {(char*)"x", NULL};
  char* environment[] = {NULL};
  errno = 0;
  return execve(file, arguments, environment) == -1 && errno == error;
}

int main(void) {
  if (mkdtemp(directory) == NULL) return 1;
  Fact(Fails("/nonexistent/program", ENOENT), "no such file: ENOENT");
  Fact(Fails("", ENOENT), "empty path: ENOENT");
  Fact(Fails(directory, EACCES), "a directory: EACCES");
  Fact(Fails("/proc/self/exe/x", ENOTDIR), "a file as directory: ENOTDIR");
  Fact(Fails(Make("\x7f"
                  "ELF",
                  4, 0600),
             EACCES),
       "not executable: EACCES");
  Fact(Fails(Make("", 0, 0700), ENOEXEC), "empty: ENOEXEC");
  Fact(Fails(Make("just some text that is no program\n", 34, 0700), ENOEXEC), "text: ENOEXEC");
  Fact(Fails(Make("\x7f"
                  "ELF\x02\x01\x01",
                  7, 0700),
             ENOEXEC),
       "a truncated ELF header: ENOEXEC");
  Fact(Fails(Make("#!/nonexistent/interpreter\n", 27, 0700), ENOENT),
       "missing interpreter: ENOENT");
  Fact(Fails(Make("#!\n", 3, 0700), ENOEXEC), "a script without interpreter: ENOEXEC");
  char name[5000];
  memset(name, 'a', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  Fact(Fails(name, ENAMETOOLONG), "a path of 5000 bytes: ENAMETOOLONG");
  Fact(Fails((const char*)16, EFAULT), "a bad pointer: EFAULT");
  Fact(syscall(SYS_execve, "/proc/self/exe", (char**)16, NULL) == -1 && errno == EFAULT,
       "bad arguments: EFAULT");
  const int writing = open(Make("\x7f"
                                "ELF",
                                4, 0700),
                           O_WRONLY | O_CLOEXEC);
  Fact(Fails(path, ETXTBSY), "a file being written: ETXTBSY");
  close(writing);
  static char large[3 << 20];
  memset(large, 'x', sizeof(large) - 1);
  char* arguments[] = {(char*)"x", large, NULL};
  Fact(execve("/proc/self/exe", arguments, NULL) == -1 && errno == E2BIG,
       "an argument of 3 MiB: E2BIG");
  unlink(path);
  rmdir(directory);
  Fact(true, "still alive");
  return Done();
}
