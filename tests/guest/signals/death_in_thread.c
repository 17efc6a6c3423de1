// A fault in one thread ends the process, whatever the others do.
#include "guest.h"

static void* Crash(void* argument) {
  (void)argument;
  SleepMs(5);
  *(volatile int*)NULL = 1;
  return NULL;
}

static void* Spin(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

int main(void) {
  static int counter;
  NoCore();
  Start(Spin, &counter);
  Fact(true, "about to crash");  // before the thread exists: nothing else orders the two
  Start(Crash, NULL);
  for (;;) pause();
}
