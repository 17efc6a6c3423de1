// Locks on a file that each thread has opened for itself: flock, given back by hand or with the
// descriptor, and the locks of open file descriptions.
// CLEAN
// FLAGS -D_GNU_SOURCE
// TSAN-DIFFERS it does not know locks on files
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "race.h"

static int values[3];
static char path[32];

static int Open(void) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  Check(file >= 0);
  return file;
}

static void* Worker(void* argument) {
  int file = Open();
  Check(flock(file, LOCK_EX) == 0);
  values[0]++;
  Check(flock(file, LOCK_UN) == 0);
  close(file);

  file = Open();
  Check(flock(file, LOCK_EX) == 0);
  values[1]++;
  close(file);

  file = Open();
  struct flock lock = {.l_type = F_WRLCK};
  Check(fcntl(file, F_OFD_SETLKW, &lock) == 0);
  values[2]++;
  lock.l_type = F_UNLCK;
  Check(fcntl(file, F_OFD_SETLK, &lock) == 0);
  close(file);
  return argument;
}

int main(void) {
  const int file = memfd_create("lock", MFD_CLOEXEC);
  Check(file >= 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  RunTwo(Worker, Worker);
  return values[0] + values[1] + values[2] == 6 ? Done() : 1;
}
