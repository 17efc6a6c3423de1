// A process of many threads stops as a whole and goes on as a whole.
#include "guest.h"

static void* Count(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

int main(void) {
  int* counters = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 4; ++i) Start(Count, &counters[i * 16]);
    for (;;) pause();
  }
  bool running = true;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5000 && Load(&counters[i * 16]) == 0; ++j) SleepMs(1);
    running = running && Load(&counters[i * 16]) > 0;
  }
  Fact(running, "4 threads count");
  for (int round = 0; round < 3; ++round) {
    kill(child, SIGSTOP);
    int status;
    Fact(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "stopped");
    int before[4];
    for (int i = 0; i < 4; ++i) before[i] = Load(&counters[i * 16]);
    SleepMs(20);
    bool still = true;
    for (int i = 0; i < 4; ++i) still = still && before[i] == Load(&counters[i * 16]);
    Fact(still, "none counts");
    kill(child, SIGCONT);
    Fact(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status), "continued");
    bool again = true;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 5000 && Load(&counters[i * 16]) == before[i]; ++j) SleepMs(1);
      again = again && Load(&counters[i * 16]) != before[i];
    }
    Fact(again, "all count again");
  }
  kill(child, SIGKILL);
  Fact(WTERMSIG(Reap(child)) == SIGKILL, "killed");
  return Done();
}
