// execve from a thread: the others end, the program goes on as the process.
#include "guest.h"

static int spinning;
static void* Spin(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

static void* Exec(void* argument) {
  while (Load(&spinning) == 0) sched_yield();
  char id[16];
  snprintf(id, sizeof(id), "%d", getpid());
  char* arguments[] = {argument, id, NULL};
  execv("/proc/self/exe", arguments);
  _exit(9);
}

int main(int argc, char** argv) {
  if (argc > 1) {
    Fact(getpid() == atoi(argv[1]), "the process id stays");
    Fact(syscall(SYS_gettid) == getpid(), "and is the thread's id now");
    FILE* file = fopen("/proc/self/status", "re");
    char line[256];
    int threads = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
      sscanf(line, "Threads: %d", &threads);
    if (file != NULL) fclose(file);
    Fact(threads >= 1, "one thread");
    return Done();
  }
  for (int i = 0; i < 3; ++i) Start(Spin, &spinning);
  Start(Exec, argv[0]);
  for (;;) pause();
}
