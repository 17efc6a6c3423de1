// read() writes the buffer in the name of its caller.
// RACE write-write global:buffer a b
// MAY-MISS shared: each place runs once
// TAGS fast
// BUILD O0 O2 static
#include <fcntl.h>

#include "race.h"

char buffer[64];
static int zeros;

static void* Reader(void* argument) {
  Check(read(zeros, buffer, sizeof(buffer)) == sizeof(buffer));  // [a]
  return argument;
}

static void* Writer(void* argument) {
  buffer[63] = 2;  // [b]
  return argument;
}

int main(void) {
  zeros = open("/dev/zero", O_RDONLY);
  RunTwo(Reader, Writer);
  return Done();
}
