// Who is told that there is something to be read (FIONREAD) comes after who wrote it.
// CLEAN
// TSAN-DIFFERS it does not know what the call says
#include <sys/ioctl.h>

#include "race.h"

static int ends[2];
int value;

static void* Writes(void* argument) {
  value = 1;
  Check(write(ends[1], "x", 1) == 1);
  return argument;
}

static void* Looks(void* argument) {
  for (int size = 0; size == 0;) Check(ioctl(ends[0], FIONREAD, &size) == 0);
  value++;
  return argument;
}

int main(void) {
  Check(pipe(ends) == 0);
  RunTwo(Writes, Looks);
  return value == 2 ? Done() : 1;
}
