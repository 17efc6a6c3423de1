// What the mask of a vector store leaves out is not written.
// CLEAN
// NEEDS avx512f
// FLAGS -mavx512f
#include <immintrin.h>

#include "race.h"

int words[32] __attribute__((aligned(64)));

static void* First(void* argument) {
  _mm512_mask_storeu_epi32(&words[4], 0x8001, _mm512_set1_epi32(1));
  return argument;
}

static void* Second(void* argument) {
  words[5] = 2;
  words[18] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
