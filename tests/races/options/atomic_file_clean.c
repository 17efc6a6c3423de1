// The same for all code of a source file.
// CLEAN
// OPTIONS --atomic=atomic_file_*.c --explain
// SAYS store of 4 bytes: Gives atomic_file_clean.c:12
// SAYS     --atomic names its code
// TSAN-DIFFERS it has no such option
#include "race.h"

static volatile int ready;

static void* Gives(void* argument) {
  ready = 1;
  return argument;
}

static void* Takes(void* argument) {
  while (!ready) usleep(100);
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
