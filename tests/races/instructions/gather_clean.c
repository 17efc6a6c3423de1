// A gather does not read what lies between its elements.
// CLEAN
// NEEDS avx2
// FLAGS -mavx2
#include <immintrin.h>

#include "race.h"

int words[64];

static void* First(void* argument) {
  const __m256i all =
      _mm256_i32gather_epi32(words, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14), 4);
  Use(_mm256_extract_epi32(all, 7));
  return argument;
}

static void* Second(void* argument) {
  words[1] = 2;
  words[13] = 2;
  words[15] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
