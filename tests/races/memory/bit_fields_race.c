// Bit-fields that share a byte are one memory location.
// RACE any global:fields a b
// MAY-MISS shared: each place runs once
#include "race.h"

struct {
  unsigned low : 4;
  unsigned high : 4;
} fields;

static void* First(void* argument) {
  fields.low = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  fields.high = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
