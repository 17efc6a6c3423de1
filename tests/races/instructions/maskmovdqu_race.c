// maskmovdqu stores where rdi points, the bytes its mask chooses.
// RACE write-write global:bytes+3 store masked
// MAY-MISS shared: each place runs once
#include <emmintrin.h>

#include "race.h"

char bytes[16];

static void* Masked(void* argument) {
  const __m128i mask = _mm_set_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0);
  _mm_maskmoveu_si128(_mm_set1_epi8(1), mask, bytes);  // [masked]
  return argument;
}

static void* Stores(void* argument) {
  volatile char* const each = bytes;
  each[3] = 2;  // [store]
  each[4] = 2;
  each[2] = 2;
  return argument;
}

int main(void) {
  RunTwo(Masked, Stores);
  return Done();
}
