// The value is written after the byte that announces it.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
static int ends[2];

static void* Sender(void* argument) {
  Check(write(ends[1], "x", 1) == 1);
  value = 1;  // [a]
  return argument;
}

static void* Receiver(void* argument) {
  char byte;
  Check(read(ends[0], &byte, 1) == 1);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  Check(pipe(ends) == 0);
  RunTwo(Sender, Receiver);
  return Done();
}
