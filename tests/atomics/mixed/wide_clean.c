// A 16-byte compare-and-swap hands a value over.
// CLEAN
// FLAGS -mcx16
#include "race.h"

static __int128 word;
static int value;

static int Swap(__int128 from, __int128 to) {
  return __sync_bool_compare_and_swap(&word, from, to);
}

static void* Gives(void* argument) {
  value = 1;
  Check(Swap(0, 1));
  return argument;
}

static void* Takes(void* argument) {
  while (!Swap(1, 2)) usleep(100);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return value == 2 ? Done() : 1;
}
