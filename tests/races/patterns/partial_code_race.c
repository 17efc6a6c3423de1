// Hot code that has long met its threads' own memory only, beside counters on one page, comes to a
// word of both.
// RACE write-write global:shared+512 a a
// OPTIONS --hot-after=64
// OPTIONS --partial-code=always
#include "race.h"

enum { kWords = 512, kRounds = 400 };

static struct {
  long counts[2][32];
  long word;
} shared __attribute__((aligned(4096)));

__attribute__((noinline)) static void AddTo(long* words, int count) {
  for (int i = 0; i < count; i++) words[i]++;  // [a]
}

static void* Work(void* number) {
  long* const own = calloc(kWords, sizeof *own);
  Check(own != NULL);
  for (int i = 0; i < kRounds; i++) {
    AddTo(own, kWords);
    shared.counts[(long)number][0]++;
    if (i % 10 == 0) usleep(1000);  // the other one gets at the page meanwhile
  }
  AddTo(&shared.word, 1);
  free(own);
  return NULL;
}

int main(void) {
  const pthread_t one = Start(Work, (void*)0);
  const pthread_t other = Start(Work, (void*)1);
  Join(one);
  Join(other);
  return Done();
}
