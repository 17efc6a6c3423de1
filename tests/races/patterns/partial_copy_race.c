// As partial_code_race, by the C library.
// RACE write-write global:shared+512 a a
// OPTIONS --hot-after=64
// OPTIONS --partial-code=always
#include <string.h>

#include "partial_code.h"

__attribute__((noinline)) static void AddTo(long* words, int count) {
  for (int i = 0; i < count; i++) words[i]++;
}

static void ComeToWord(const long* own) {
  memcpy(&shared.word, own, Opaque(sizeof shared.word));  // [a]
}
