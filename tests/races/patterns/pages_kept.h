// A first thread that works on a table of its own while it makes short threads, one after the
// other: the pages stay its own.
#ifndef TRAPLINE_TESTS_RACES_PATTERNS_PAGES_KEPT_H_
#define TRAPLINE_TESTS_RACES_PATTERNS_PAGES_KEPT_H_

#include "race.h"

enum { kPages = 64, kWords = 512, kRounds = 12 };

static long table[kPages][kWords];

static void* Nothing(void* argument) { return argument; }

// Long enough to be native.
__attribute__((noinline)) static void Work(int round) {
  for (int page = 0; page < kPages; page++) {
    for (int word = 0; word < kWords; word++) table[page][word] += round;
  }
}

static void WorkByRounds(void) {
  for (int round = 0; round < kRounds; round++) {
    const pthread_t thread = Start(Nothing, NULL);
    Work(round);
    Join(thread);
  }
}

#endif  // TRAPLINE_TESTS_RACES_PATTERNS_PAGES_KEPT_H_
