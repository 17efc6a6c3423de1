// State inside of libc is its own affair: time zones, random numbers, the environment, errno.
// CLEAN
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "race.h"

static void* Worker(void* argument) {
  const time_t start = 0;
  struct tm broken_down;
  localtime_r(&start, &broken_down);
  Use(random());
  Use((long)getenv("HOME"));
  Use(open("/nonexistent", O_RDONLY));
  Check(errno == ENOENT);
  char text[64];
  Use((long)strerror_r(errno, text, sizeof(text)));
  Use(strtol("77", NULL, 10));
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
