// Threads that reuse the ended ones' stacks, ids and pthread_t.
// CLEAN
#include "race.h"

int value;

static void* Adder(void* argument) {
  int local[64];
  for (int i = 0; i < 64; i++) local[i] = i;
  Use(local[63]);
  value++;
  return argument;
}

int main(void) {
  for (int i = 0; i < 20; i++) Join(Start(Adder, NULL));
  return value == 20 ? Done() : 1;
}
