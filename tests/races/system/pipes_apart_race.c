// Two pipes have nothing to do with each other.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
static int one[2];
static int other[2];

static void* Sender(void* argument) {
  value = 1;  // [a]
  Check(write(one[1], "x", 1) == 1);
  return argument;
}

static void* Receiver(void* argument) {
  char byte;
  Check(read(other[0], &byte, 1) == 1);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  Check(pipe(one) == 0 && pipe(other) == 0 && write(other[1], "x", 1) == 1);
  RunTwo(Sender, Receiver);
  return Done();
}
