// Work on pages of which another thread has other lines, and words that lie far from those: pages
// change hands with their neighbours.
#ifndef TRAPLINE_TESTS_RACES_PATTERNS_PAGES_LOST_H_
#define TRAPLINE_TESTS_RACES_PATTERNS_PAGES_LOST_H_

#include "race.h"

enum { kPages = 256, kLines = 64, kLine = 8, kTurns = 400 };

static long table[kPages][kLines][kLine];

struct Apart {
  char before[1 << 20];
  int result;
  char after[1 << 20];
};

// Long enough to be native: lines of each page that nobody else uses.
__attribute__((noinline)) static void Work(int first) {
  for (int turn = 0; turn < kTurns; turn++) {
    for (int page = 0; page < kPages; page++) {
      for (int line = first; line < kLines; line += 2) table[page][line][0] += turn;
    }
  }
}

#endif  // TRAPLINE_TESTS_RACES_PATTERNS_PAGES_LOST_H_
