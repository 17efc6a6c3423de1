// A flag that no rule takes for atomic: --atomic says so.
// CLEAN
// BUILD O0 O2 gcc-O2-nodebug
// OPTIONS --atomic=ready
// TSAN-DIFFERS it has no such option
// TAGS fast
#include "race.h"

static int value;
static volatile int ready;

static void* Gives(void* argument) {
  value = 1;
  ready = 1;
  return argument;
}

static void* Takes(void* argument) {
  while (!ready) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
