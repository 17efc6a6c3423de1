// client.h: an allocator of the program's own hands one block round.
// CLEAN
// TSAN-DIFFERS it does not know client.h
#include "race.h"
#include "trapline/client.h"

// A pool of one block; its word is not tracked, so it orders nothing.
int block[16];
volatile int taken;

static int* Allocate(int mine) {
  while (taken != mine) usleep(1000);
  trapline_allocated(block, sizeof(block));
  return block;
}

static void Free(int next) {
  trapline_freeing(block, sizeof(block));
  taken = next;
}

static void* First(void* argument) {
  int* mine = Allocate(0);
  mine[3] = 1;
  Free(1);
  return argument;
}

static void* Second(void* argument) {
  int* mine = Allocate(1);
  mine[3] = 2;
  Free(0);
  return argument;
}

int main(void) {
  trapline_untrack(&taken, sizeof(taken));
  RunTwo(First, Second);
  return Done();
}
