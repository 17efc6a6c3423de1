// Reads never race with reads.
// CLEAN
#include "race.h"

int value = 7;

static void* Reader(void* argument) {
  for (int i = 0; i < 10; i++) Use(*(volatile int*)&value);
  return argument;
}

int main(void) {
  RunTwo(Reader, Reader);
  return Done();
}
