// A non-temporal store.
// RACE write-write global:bytes a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS this intrinsic is not instrumented
#include <immintrin.h>

#include "race.h"

char bytes[64] __attribute__((aligned(64)));

static void* First(void* argument) {
  _mm_stream_si128((__m128i*)&bytes[32], _mm_set1_epi8(1));  // [a]
  return argument;
}

static void* Second(void* argument) {
  bytes[40] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
