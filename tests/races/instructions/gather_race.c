// A gather reads the elements its indices name.
// RACE read-write global:words a b
// NEEDS avx2
// FLAGS -mavx2
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS this intrinsic is not instrumented
#include <immintrin.h>

#include "race.h"

int words[4096];

static void* First(void* argument) {
  const __m256i indices = _mm256_setr_epi32(0, 9, 18, 27, 36, 45, 54, 3000);
  const __m256i all = _mm256_i32gather_epi32(words, indices, 4);  // [a]
  Use(_mm256_extract_epi32(all, 7));
  return argument;
}

static void* Second(void* argument) {
  words[3000] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
