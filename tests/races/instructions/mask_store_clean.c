// vpmaskmovd does not write what its mask leaves out.
// CLEAN
// NEEDS avx2
// FLAGS -mavx2
#include <immintrin.h>

#include "race.h"

int words[16] __attribute__((aligned(32)));

static void* First(void* argument) {
  _mm256_maskstore_epi32(words, _mm256_setr_epi32(-1, 0, 0, -1, 0, 0, 0, 0), _mm256_set1_epi32(1));
  return argument;
}

static void* Second(void* argument) {
  words[1] = 2;
  words[4] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
