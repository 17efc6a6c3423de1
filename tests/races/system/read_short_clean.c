// read() writes only as many bytes as it has got.
// CLEAN
#include "race.h"

char buffer[64];
static int ends[2];

static void* Reader(void* argument) {
  Check(read(ends[0], buffer, sizeof(buffer)) == 5);
  return argument;
}

static void* Writer(void* argument) {
  buffer[5] = 2;
  return argument;
}

int main(void) {
  Check(pipe(ends) == 0 && write(ends[1], "hello", 5) == 5);
  RunTwo(Reader, Writer);
  return Done();
}
