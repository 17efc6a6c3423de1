// A thread calls exit() while others sleep; the handlers run in it.
// CLEAN
// EXIT 3
#include "race.h"

int value;

static void AtExit(void) { value++; }

static void* Sleeper(void* argument) {
  for (;;) pause();
  return argument;
}

static void* Leaver(void* argument) {
  value++;
  exit(3);
  return argument;
}

int main(void) {
  atexit(AtExit);
  Start(Sleeper, NULL);
  Join(Start(Leaver, NULL));
  return 1;
}
