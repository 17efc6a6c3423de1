// One thread frees what another one writes.
// RACE any heap:64 a b
// MAY-MISS shared: each place runs once
#include "race.h"

static int* block;

static void* User(void* argument) {
  *(volatile int*)&block[5] = 1;  // [a]
  return argument;
}

static void* Freer(void* argument) {
  free(block);  // [b]
  return argument;
}

int main(void) {
  block = (int*)malloc(64);
  RunTwo(User, Freer);
  return Done();
}
