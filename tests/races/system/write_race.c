// write() reads the buffer in the name of its caller.
// RACE read-write global:buffer a b
// MAY-MISS shared: each place runs once
#include <fcntl.h>

#include "race.h"

char buffer[64];
static int null;

static void* Writer(void* argument) {
  Check(write(null, buffer, sizeof(buffer)) == sizeof(buffer));  // [a]
  return argument;
}

static void* Changer(void* argument) {
  buffer[10] = 2;  // [b]
  return argument;
}

int main(void) {
  null = open("/dev/null", O_WRONLY);
  RunTwo(Writer, Changer);
  return Done();
}
