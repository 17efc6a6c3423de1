// Neighbours in an array of structures are assigned by two threads.
// CLEAN
#include "race.h"

struct Block {
  char members[27];
} source, targets[2];

static void* First(void* argument) {
  targets[0] = source;
  return argument;
}

static void* Second(void* argument) {
  targets[1] = source;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
