#include "guest.h"

int main(void) {
  const int resources[] = {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_CPU, RLIMIT_FSIZE};
  int good = 0;
  for (int i = 0; i < 5; ++i) {
    struct rlimit a;
    struct rlimit b;
    good += getrlimit((__rlimit_resource_t)resources[i], &a) == 0 &&
            prlimit(getpid(), (enum __rlimit_resource)resources[i], NULL, &b) == 0 &&
            a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
  }
  Fact(good == 5, "getrlimit and prlimit agree");
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, SIG_IGN);
  char data[2000] = {0};
  const int fd = OpenTemporary();
  Fact(write(fd, data, sizeof(data)) == 1000, "a file of at most 1000 bytes");
  Fact(write(fd, data, 1) == -1 && errno == EFBIG, "then EFBIG");
  const pid_t child = fork();
  if (child == 0) {
    NoCore();
    struct rlimit cpu;
    getrlimit(RLIMIT_CPU, &cpu);
    cpu.rlim_cur = 1;
    setrlimit(RLIMIT_CPU, &cpu);
    for (;;) {
    }
  }
  Fact(WTERMSIG(Reap(child)) == SIGXCPU, "a second of processor time, then SIGXCPU");
  return Done();
}
