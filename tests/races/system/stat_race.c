// fstat() fills a structure that another thread reads.
// RACE read-write global:status a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS the call is expanded inline, or not intercepted
#include <sys/stat.h>

#include "race.h"

struct stat status;

static void* Asker(void* argument) {
  Check(fstat(0, &status) == 0);  // [a]
  return argument;
}

static void* Reader(void* argument) {
  Use((long)status.st_size);  // [b]
  return argument;
}

int main(void) {
  RunTwo(Asker, Reader);
  return Done();
}
