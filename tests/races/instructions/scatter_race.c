// A scatter writes the elements its indices name.
// RACE write-write global:words a b
// NEEDS avx512f
// FLAGS -mavx512f
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS this intrinsic is not instrumented
#include <immintrin.h>

#include "race.h"

int words[4096];

static void* First(void* argument) {
  const __m512i indices = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 3000, 8, 7, 6, 5, 4, 3, 2);
  _mm512_mask_i32scatter_epi32(words, 0xff, indices, _mm512_set1_epi32(1), 4);  // [a]
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
