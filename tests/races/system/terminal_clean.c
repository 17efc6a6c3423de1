// What is read at one end of a pseudo terminal comes after who wrote it at the other.
// CLEAN
#include <fcntl.h>
#include <stdlib.h>

#include "race.h"

int value;
static int master, slave;

static void* Types(void* argument) {
  value = 1;
  Check(write(master, "x\n", 2) == 2);
  return argument;
}

static void* Reads(void* argument) {
  char text[8];
  Check(read(slave, text, sizeof text) == 2);
  value++;
  return argument;
}

int main(void) {
  master = posix_openpt(O_RDWR | O_NOCTTY);
  Check(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  Check(slave >= 0);
  RunTwo(Types, Reads);
  return Done();
}
