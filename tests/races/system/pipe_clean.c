// What came before a write to a pipe is ordered before what follows the read of it.
// CLEAN
// TAGS fast
// BUILD O0 O2 static
#include "race.h"

int value;
static int ends[2];

static void* Sender(void* argument) {
  value = 1;
  Check(write(ends[1], "x", 1) == 1);
  return argument;
}

static void* Receiver(void* argument) {
  char byte;
  Check(read(ends[0], &byte, 1) == 1);
  value++;
  return argument;
}

int main(void) {
  Check(pipe(ends) == 0);
  RunTwo(Sender, Receiver);
  return value == 2 ? Done() : 1;
}
