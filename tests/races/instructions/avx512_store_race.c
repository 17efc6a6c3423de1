// A 64-byte vector store, masked.
// RACE write-write global:words a b
// NEEDS avx512f
// FLAGS -mavx512f
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS this intrinsic is not instrumented
#include <immintrin.h>

#include "race.h"

int words[32] __attribute__((aligned(64)));

static void* First(void* argument) {
  _mm512_mask_storeu_epi32(&words[4], 0x8001, _mm512_set1_epi32(1));  // [a]
  return argument;
}

static void* Second(void* argument) {
  words[19] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
