// A killed parent: its children's pipes close only when the children go; nothing of it is left.
#include "guest.h"

static void* Spin(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

int main(void) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t parent = fork();
  if (parent == 0) {
    static int counter;
    close(ends[0]);
    Start(Spin, &counter);
    while (Load(&counter) == 0) sched_yield();
    if (write(ends[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ends[1]);
  char byte;
  Fact(read(ends[0], &byte, 1) == 1, "running");
  kill(parent, SIGKILL);
  Fact(read(ends[0], &byte, 1) == 0, "its end of the pipe is closed: nothing holds it any more");
  Fact(WTERMSIG(Reap(parent)) == SIGKILL, "killed");
  Fact(kill(parent, 0) == -1 && errno == ESRCH, "gone");
  return Done();
}
