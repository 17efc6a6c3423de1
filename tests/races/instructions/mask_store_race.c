// vpmaskmovd writes the elements of its mask.
// RACE write-write global:words a b
// NEEDS avx2
// FLAGS -mavx2
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS this intrinsic is not instrumented
#include <immintrin.h>

#include "race.h"

int words[16] __attribute__((aligned(32)));

static void* First(void* argument) {
  const __m256i mask = _mm256_setr_epi32(-1, 0, 0, -1, 0, 0, 0, 0);
  _mm256_maskstore_epi32(words, mask, _mm256_set1_epi32(1));  // [a]
  return argument;
}

static void* Second(void* argument) {
  words[3] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
