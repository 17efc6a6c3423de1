// An atomic word, and a plain write to one of its bytes.
// RACE atomic-plain global:word a b
// MAY-MISS shared: each place runs once
#include <stdint.h>

#include "race.h"

uint64_t word;

static void* Whole(void* argument) {
  __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);  // [a]
  return argument;
}

static void* Part(void* argument) {
  ((volatile char*)&word)[3] = 1;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Whole, Part);
  return Done();
}
