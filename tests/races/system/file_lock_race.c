// Two readers of a file lock write; and fcntl's locks of the older kind are the process's: threads
// do not exclude each other by them.
// RACE write-write global:value a b
// RACE write-write global:other c d
// FLAGS -D_GNU_SOURCE
// MAY-MISS shared: each place runs once
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "race.h"

int value, other;
static char path[32];

static int Take(int operation) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  Check(file >= 0);
  if (operation != 0) {
    Check(flock(file, operation) == 0);
  } else {
    struct flock lock = {.l_type = F_WRLCK};
    Check(fcntl(file, F_SETLKW, &lock) == 0);
  }
  return file;
}

static void* First(void* argument) {
  Take(LOCK_SH);
  value = 1;  // [a]
  Take(0);
  other = 1;  // [c]
  return argument;
}

static void* Second(void* argument) {
  Take(LOCK_SH);
  value = 2;  // [b]
  Take(0);
  other = 2;  // [d]
  return argument;
}

int main(void) {
  const int file = memfd_create("lock", MFD_CLOEXEC);
  Check(file >= 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  RunTwo(First, Second);
  return Done();
}
