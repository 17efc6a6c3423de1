// An _Atomic structure of 16 bytes is published before what it hands over is written.
// RACE any - a b
// FLAGS -DWORDS=2 -Wno-unknown-warning-option -Wno-atomic-alignment
// LINK -latomic
// MAY-MISS shared: who had the page first did so alone
#include "structure.h"

static void* Giver(void* argument) {
  Publish();
  buffer[1] = 5;  // [a]
  return argument;
}

static void* Taker(void* argument) {
  Await()[1] = 6;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Giver, Taker);
  return Done();
}
