// client.h: the same pool without the annotations.
// RACE write-write global:block a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "race.h"
#include "trapline/client.h"

int block[16];
volatile int taken;

static int* Allocate(int mine) {
  while (taken != mine) usleep(1000);
  return block;
}

static void Free(int next) { taken = next; }

static void* First(void* argument) {
  int* mine = Allocate(0);
  mine[3] = 1;  // [a]
  Free(1);
  return argument;
}

static void* Second(void* argument) {
  int* mine = Allocate(1);
  mine[3] = 2;  // [b]
  Free(0);
  return argument;
}

int main(void) {
  trapline_untrack(&taken, sizeof(taken));
  RunTwo(First, Second);
  return Done();
}
