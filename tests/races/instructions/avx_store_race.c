// A 32-byte vector store across two pages.
// RACE write-write global:bytes a b
// NEEDS avx
// FLAGS -mavx
// MAY-MISS shared: each place runs once
#include <immintrin.h>

#include "race.h"

char bytes[8192] __attribute__((aligned(4096)));

static void* First(void* argument) {
  _mm256_storeu_si256((__m256i*)&bytes[4080], _mm256_set1_epi8(1));  // [a]
  return argument;
}

static void* Second(void* argument) {
  bytes[4111] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
