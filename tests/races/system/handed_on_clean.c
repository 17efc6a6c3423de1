// Who reads what a third thread has spliced or copied from one pipe into another comes after who
// wrote it.
// CLEAN
// FLAGS -D_GNU_SOURCE
// TSAN-DIFFERS it does not know splice and tee
#include <fcntl.h>
#include <sys/ioctl.h>

#include "race.h"

static int from[2], to[2], next[2];
int value;

static void* Writes(void* argument) {
  value = 1;
  Check(write(from[1], "x", 1) == 1);
  return argument;
}

// Looks how much there is, so that neither call waits.
static void* HandsOn(void* argument) {
  for (int size = 0; size == 0;) Check(ioctl(from[0], FIONREAD, &size) == 0);
  Check(tee(from[0], to[1], 1, 0) == 1);
  Check(splice(from[0], NULL, next[1], NULL, 1, 0) == 1);
  return argument;
}

int main(void) {
  Check(pipe(from) == 0 && pipe(to) == 0 && pipe(next) == 0);
  const pthread_t writes = Start(Writes, NULL);
  const pthread_t hands_on = Start(HandsOn, NULL);
  char byte;
  Check(read(to[0], &byte, 1) == 1);
  value++;
  Check(read(next[0], &byte, 1) == 1);
  value++;
  Join(writes);
  Join(hands_on);
  return value == 3 ? Done() : 1;
}
