// Neighbouring bytes, words and halves of one 8-byte granule.
// CLEAN
// TAGS fast
#include "race.h"

union {
  char bytes[8];
  short halves[4];
  int words[2];
} granule __attribute__((aligned(8)));

static void* First(void* argument) {
  for (int i = 0; i < 3; i++) granule.bytes[i]++;
  granule.words[1]++;
  return argument;
}

static void* Second(void* argument) {
  granule.bytes[3]++;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
