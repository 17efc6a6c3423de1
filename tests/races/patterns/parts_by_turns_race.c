// After some turns in which each thread has kept to its own part, one writes to the other's, late
// and natively.
// RACE write-write global:parts+2400 first second
// SECONDS 60
#include "parts_by_turns.h"

static void* Own(void* argument) {
  Work((int)(long)argument, 1);
  return argument;
}

static void* First(void* argument) {
  parts[0][300] = 7;  // [first]
  return argument;
}

static void* Second(void* argument) {
  Work(1, 1);
  parts[0][300] = 8;  // [second]
  return argument;
}

int main(void) {
  for (int turn = 0; turn < 5; turn++) Turn(Own);
  RunTwo(First, Second);
  return Done();
}
