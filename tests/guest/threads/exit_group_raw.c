// exit_group from a thread ends the process at once: the spinning and the sleeping threads too, no
// handlers.
#include "guest.h"

static void* Spin(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

static void* Exit(void* argument) {
  (void)argument;
  SleepMs(5);
  syscall(SYS_exit_group, 9);
  return NULL;
}

static void AtExit(void) { Fact(false, "exit handler ran"); }

int main(void) {
  static int counter;
  atexit(AtExit);
  for (int i = 0; i < 3; ++i) Start(Spin, &counter);
  Fact(true, "waiting");
  Start(Exit, NULL);
  for (;;) pause();
}
