// As partial_code_race, by the C library.
// RACE write-write global:shared+512 a a
// OPTIONS --hot-after=64
// OPTIONS --partial-code=always
#include <string.h>

#include "race.h"

enum { kWords = 512, kRounds = 400 };

static struct {
  long counts[2][32];
  long word;
} shared __attribute__((aligned(4096)));

static void* Work(void* number) {
  long* const own = calloc(kWords, sizeof *own);
  Check(own != NULL);
  for (int i = 0; i < kRounds; i++) {
    for (int j = 0; j < kWords; j++) own[j]++;
    shared.counts[(long)number][0]++;
    if (i % 10 == 0) usleep(1000);  // the other one gets at the page meanwhile
  }
  memcpy(&shared.word, own, Opaque(sizeof shared.word));  // [a]
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
