// A 32-byte vector store across two pages, and the bytes beside it.
// CLEAN
// NEEDS avx
// FLAGS -mavx
#include <immintrin.h>

#include "race.h"

char bytes[8192] __attribute__((aligned(4096)));

static void* First(void* argument) {
  _mm256_storeu_si256((__m256i*)&bytes[4080], _mm256_set1_epi8(1));
  return argument;
}

static void* Second(void* argument) {
  bytes[4079] = 2;
  bytes[4112] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
