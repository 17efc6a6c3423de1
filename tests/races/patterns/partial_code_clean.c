// As partial_code_race, but each thread comes to the word while it holds a mutex.
// CLEAN
// OPTIONS --hot-after=64
// OPTIONS --partial-code=always
#include "race.h"

enum { kWords = 512, kRounds = 400 };

static struct {
  long counts[2][32];
  long word;
} shared __attribute__((aligned(4096)));

__attribute__((noinline)) static void AddTo(long* words, int count) {
  for (int i = 0; i < count; i++) words[i]++;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Work(void* number) {
  long* const own = calloc(kWords, sizeof *own);
  Check(own != NULL);
  for (int i = 0; i < kRounds; i++) {
    AddTo(own, kWords);
    shared.counts[(long)number][0]++;
    if (i % 10 == 0) usleep(1000);  // the other one gets at the page meanwhile
  }
  Check(pthread_mutex_lock(&mutex) == 0);
  AddTo(&shared.word, 1);
  Check(pthread_mutex_unlock(&mutex) == 0);
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
