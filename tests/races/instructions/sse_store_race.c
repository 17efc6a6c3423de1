// A 16-byte vector store over a byte.
// RACE write-write global:bytes a b
// MAY-MISS shared: each place runs once
// TAGS fast
#include <immintrin.h>

#include "race.h"

char bytes[64] __attribute__((aligned(64)));

static void* First(void* argument) {
  _mm_storeu_si128((__m128i*)&bytes[3], _mm_set1_epi8(1));  // [a]
  return argument;
}

static void* Second(void* argument) {
  bytes[18] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
