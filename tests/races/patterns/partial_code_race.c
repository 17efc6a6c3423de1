// Hot code that has long met its threads' own memory only, beside counters on one page, comes to a
// word of both.
// RACE write-write global:shared+512 a a
// OPTIONS --hot-after=64
// OPTIONS --partial-code=always
#include "partial_code.h"

__attribute__((noinline)) static void AddTo(long* words, int count) {
  for (int i = 0; i < count; i++) words[i]++;  // [a]
}

static void ComeToWord(const long* own) {
  Use(own[0]);
  AddTo(&shared.word, 1);
}
