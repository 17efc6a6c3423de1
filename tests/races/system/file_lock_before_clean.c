// A lock on a file that was taken before there were threads ends with its descriptor.
// CLEAN
// FLAGS -D_GNU_SOURCE
// TSAN-DIFFERS it does not know locks on files
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "race.h"

static int held, wanted;
int value;

static void* Ends(void* argument) {
  value = 1;
  close(held);
  return argument;
}

static void* Takes(void* argument) {
  Check(flock(wanted, LOCK_EX) == 0);
  value++;
  return argument;
}

int main(void) {
  const int file = memfd_create("lock", MFD_CLOEXEC);
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  held = open(path, O_RDWR);
  wanted = open(path, O_RDWR);
  Check(held >= 0 && wanted >= 0 && flock(held, LOCK_EX) == 0);
  RunTwo(Ends, Takes);
  return value == 2 ? Done() : 1;
}
