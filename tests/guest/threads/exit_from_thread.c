#include "guest.h"

static void* Exit(void* argument) {
  SleepMs(5);
  exit((int)(intptr_t)argument);
}

static void* Spin(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

static void AtExit(void) { Fact(true, "exit handler ran"); }

int main(void) {
  static int counter;
  atexit(AtExit);
  Start(Spin, &counter);
  Start(Exit, (void*)7);
  for (;;) pause();
}
