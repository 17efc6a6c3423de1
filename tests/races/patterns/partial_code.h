// Two threads whose hot code long meets memory of their own only, beside counters of theirs on one
// page, until both come to a word of that page.
#ifndef TRAPLINE_TESTS_RACES_PATTERNS_PARTIAL_CODE_H_
#define TRAPLINE_TESTS_RACES_PATTERNS_PARTIAL_CODE_H_

#include "race.h"

enum { kWords = 512, kRounds = 400 };

static struct {
  long counts[2][32];
  long word;
} shared __attribute__((aligned(4096)));

// The program's: the hot code, and what comes to `shared.word`, given the thread's own words.
static void AddTo(long* words, int count);
static void ComeToWord(const long* own);

static void Work(long number) {
  long* const own = calloc(kWords, sizeof *own);
  Check(own != NULL);
  for (int i = 0; i < kRounds; i++) {
    AddTo(own, kWords);
    shared.counts[number][0]++;
    if (i % 10 == 0) usleep(1000);  // the other one gets at the page meanwhile
  }
  ComeToWord(own);
  free(own);
}

static void* First(void* argument) {
  Work(0);
  return argument;
}

static void* Second(void* argument) {
  Work(1);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}

#endif  // TRAPLINE_TESTS_RACES_PATTERNS_PARTIAL_CODE_H_
