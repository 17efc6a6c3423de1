#include "guest.h"

int main(int argc, char** argv) {
  if (argc == 4) {
    Fact(getpid() == atoi(argv[1]), "the process id stays");
    Fact(getppid() == atoi(argv[2]), "the parent too");
    Fact(syscall(SYS_gettid) == getpid(), "the thread id is the process id");
    char byte = 0;
    Fact(read(atoi(argv[3]), &byte, 1) == 1 && byte == 'k', "an open descriptor stays open");
    char path[PATH_MAX];
    Fact(getcwd(path, sizeof(path)) != NULL && strcmp(path, "/tmp") == 0,
         "the working directory stays");
    Fact(umask(0) == 027, "the umask stays");
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    Fact(limit.rlim_cur == 0, "limits stay");
    Fact(alarm(0) > 0, "an alarm goes on");
    return Done();
  }
  char numbers[3][16];
  int ends[2];
  NoCore();
  alarm(1000);
  umask(027);
  if (pipe(ends) != 0 || write(ends[1], "k", 1) != 1 || chdir("/tmp") != 0) return 1;
  snprintf(numbers[0], 16, "%d", getpid());
  snprintf(numbers[1], 16, "%d", getppid());
  snprintf(numbers[2], 16, "%d", ends[0]);
  char* arguments[] = {argv[0], numbers[0], numbers[1], numbers[2], NULL};
  execv("/proc/self/exe", arguments);
  return 1;
}
