// A 16-byte vector store, and the bytes beside it.
// CLEAN
#include <immintrin.h>

#include "race.h"

char bytes[64] __attribute__((aligned(64)));

static void* First(void* argument) {
  _mm_storeu_si128((__m128i*)&bytes[3], _mm_set1_epi8(1));
  return argument;
}

static void* Second(void* argument) {
  bytes[2] = 2;
  bytes[19] = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
