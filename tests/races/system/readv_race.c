// readv() fills several buffers.
// RACE write-write global:second a b
// MAY-MISS shared: each place runs once
#include <fcntl.h>
#include <sys/uio.h>

#include "race.h"

char first[16];
char second[16];
static int zeros;

static void* Reader(void* argument) {
  const struct iovec parts[2] = {{first, 16}, {second, 16}};
  Check(readv(zeros, parts, 2) == 32);  // [a]
  return argument;
}

static void* Writer(void* argument) {
  second[0] = 2;  // [b]
  return argument;
}

int main(void) {
  zeros = open("/dev/zero", O_RDONLY);
  RunTwo(Reader, Writer);
  return Done();
}
