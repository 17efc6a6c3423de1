// client.h: of a range that is untracked, one part is tracked again.
// RACE write-write global:values+12 a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

volatile int values[8];

static void* First(void* argument) {
  for (int i = 0; i < 8; i++) {
    if (i != 3) values[i] = 1;
  }
  values[3] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  for (int i = 0; i < 8; i++) {
    if (i != 3) values[i] = 2;
  }
  values[3] = 2;  // [b]
  return argument;
}

int main(void) {
  trapline_untrack(values, 16);
  trapline_untrack(values + 2, 24);
  trapline_track(values + 3, 4);
  RunTwo(First, Second);
  return Done();
}
