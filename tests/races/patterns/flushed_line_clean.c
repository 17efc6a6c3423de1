// Each thread writes a counter of its own back to memory; both lie in one cache line, which is what
// is flushed.
// CLEAN
// BUILD gcc-O2
// TAGS fast
#include <emmintrin.h>

#include "race.h"

enum { kRounds = 200 };

static _Alignas(64) struct { long first, rest[3], second; } line;

static void Write(volatile long* counter) {
  for (int i = 0; i < kRounds; ++i) {
    ++*counter;
    _mm_clflush(&line);
  }
}

static void* First(void* unused) {
  Write(&line.first);
  return unused;
}

static void* Second(void* unused) {
  Write(&line.second);
  return unused;
}

int main(void) {
  RunTwo(First, Second);
  Check(line.first == kRounds && line.second == kRounds);
  return Done();
}
