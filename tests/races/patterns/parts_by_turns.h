// Two threads that are made anew for each turn walk through a big part of memory each, so natively
// that the pages of one that has ended are the next one's.
#ifndef TRAPLINE_TESTS_RACES_PATTERNS_PARTS_BY_TURNS_H_
#define TRAPLINE_TESTS_RACES_PATTERNS_PARTS_BY_TURNS_H_

#include "race.h"

enum { kParts = 2, kWords = 1 << 17 };  // 1 MiB each

static long parts[kParts][kWords];

__attribute__((noinline)) static void Work(int part, long value) {
  for (int word = 0; word < kWords; word++) parts[part][word] += value;
}

// Each turn: `work` with 0 and with 1, side by side.
static void Turn(void* (*work)(void*)) {
  pthread_t threads[kParts];
  for (long i = 0; i < kParts; i++) threads[i] = Start(work, (void*)i);
  for (int i = 0; i < kParts; i++) Join(threads[i]);
}

#endif  // TRAPLINE_TESTS_RACES_PATTERNS_PARTS_BY_TURNS_H_
