// A zero-width bit-field makes two memory locations.
// CLEAN
#include "race.h"

struct {
  unsigned low : 4;
  unsigned : 0;
  unsigned high : 4;
} fields;

static void* First(void* argument) {
  fields.low = 1;
  return argument;
}

static void* Second(void* argument) {
  fields.high = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
