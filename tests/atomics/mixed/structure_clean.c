// An _Atomic structure of 16 bytes hands a buffer over.
// CLEAN
// FLAGS -DWORDS=2 -Wno-unknown-warning-option -Wno-atomic-alignment
// LINK -latomic
#include "structure.h"

static void* Giver(void* argument) {
  buffer[1] = 5;
  Publish();
  return argument;
}

static void* Taker(void* argument) {
  Await()[1] = 6;
  return argument;
}

int main(void) {
  RunTwo(Giver, Taker);
  return Done();
}
