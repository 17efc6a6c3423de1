#include "guest.h"

static volatile int shared_value;

int main(int argc, char** argv) {
  if (argc > 1) return 21;
  char* arguments[] = {argv[0], (char*)"child", NULL};
  for (int i = 0; i < 5; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      shared_value = i + 1;
      execv("/proc/self/exe", arguments);
      _exit(1);
    }
    Fact(shared_value == i + 1, "the parent sees what the child did before exec");
    Fact(WEXITSTATUS(Reap(child)) == 21, "the child ran the program");
  }
  const pid_t child = vfork();
  if (child == 0) {
    execl("/nonexistent", "x", (char*)NULL);
    shared_value = errno;
    _exit(7);
  }
  Fact(WEXITSTATUS(Reap(child)) == 7 && shared_value == ENOENT,
       "a failed exec: ENOENT seen by both");
  return Done();
}
