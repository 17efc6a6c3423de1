// memcpy copies what its length says, whatever widths it uses.
// CLEAN
#include <string.h>

#include "race.h"

char source[300];
char target[300];

static void* First(void* argument) {
  for (size_t size = 1; size < 70; size += 9) memcpy(target + 1, source + 1, Opaque(size));
  memcpy(target + 1, source + 1, Opaque(100));
  return argument;
}

static void* Second(void* argument) {
  target[0] = 2;
  target[101] = 2;
  source[0] = 2;
  source[101] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
