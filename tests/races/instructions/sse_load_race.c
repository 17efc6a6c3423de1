// A 16-byte vector load under a byte store.
// RACE read-write global:bytes a b
// MAY-MISS shared: each place runs once
#include <immintrin.h>

#include "race.h"

char bytes[64] __attribute__((aligned(64)));

static void* First(void* argument) {
  __asm__ volatile("" : : "x"(_mm_load_si128((const __m128i*)&bytes[16])));  // [a]
  return argument;
}

static void* Second(void* argument) {
  bytes[31] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
