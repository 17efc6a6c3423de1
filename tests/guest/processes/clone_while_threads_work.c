// clone with flags that fork does not know, while other threads are in system calls.
#include "guest.h"

static int stop;
static char path[4000];
static void* Churn(void* argument) {
  while (!Load(&stop)) {
    if (access(path, R_OK) == 0) *(int*)argument = 1;
  }
  return NULL;
}

int main(void) {
  strcpy(path, "/proc/self");
  for (size_t at = strlen(path); at < sizeof(path) - 3; at += 2) memcpy(path + at, "/a", 2);
  int found[3] = {0};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) threads[i] = Start(Churn, &found[i]);
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    const long child = syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      int entries = 0;
      for (int j = 0; j < 10; ++j) entries += access(path, R_OK) != 0;
      _exit(entries);
    }
    good += WEXITSTATUS(Reap((pid_t)child)) == 10;
  }
  Store(&stop, 1);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  Fact(good == 100, "100 children could make system calls");
  Fact(found[0] + found[1] + found[2] == 0, "the threads were not disturbed");
  return Done();
}
