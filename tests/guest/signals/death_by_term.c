#include "guest.h"

static void* Spin(void* argument) {
  for (;;) Add((int*)argument, 1);
  return NULL;
}

int main(void) {
  static int counter;
  Start(Spin, &counter);
  Start(Spin, &counter);
  Fact(true, "terminating");
  kill(getpid(), SIGTERM);
  for (;;) pause();
}
