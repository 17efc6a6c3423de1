// As partial_code_race, but each thread comes to the word while it holds a mutex.
// CLEAN
// OPTIONS --hot-after=64
// OPTIONS --partial-code=always
#include "partial_code.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void AddTo(long* words, int count) {
  for (int i = 0; i < count; i++) words[i]++;
}

static void ComeToWord(const long* own) {
  Use(own[0]);
  Check(pthread_mutex_lock(&mutex) == 0);
  AddTo(&shared.word, 1);
  Check(pthread_mutex_unlock(&mutex) == 0);
}
