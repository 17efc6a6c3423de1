// Two threads fill the two halves of each of many pages, over and over, and meet at a barrier that
// they spin at: neither loses what it wrote, and both get on.
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { kPages = 64, kRounds = 400, kWords = kPage / sizeof(long) };

static long (*pages)[kWords];
static atomic_int arrived;

static void* Fill(void* argument) {
  const long half = (long)argument;
  static pthread_mutex_t own[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
  for (int round = 1; round <= kRounds; ++round) {
    for (int page = 0; page < kPages; ++page) {
      for (int i = 0; i < (int)kWords / 2; ++i) pages[page][half * kWords / 2 + i] += 1 + half;
    }
    pthread_mutex_lock(&own[half]);
    pthread_mutex_unlock(&own[half]);
    if (round % 50 != 0) continue;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < round / 50 * 2) {
    }
  }
  return NULL;
}

int main(void) {
  pages = (void*)Map(kPages * kPage, PROT_READ | PROT_WRITE);
  pthread_t threads[2];
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Fill, (void*)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  int wrong = 0;
  for (int page = 0; page < kPages; ++page) {
    for (int i = 0; i < (int)kWords; ++i)
      wrong += pages[page][i] != kRounds * (i < (int)kWords / 2 ? 1 : 2);
  }
  Fact(wrong == 0, "every word has what its thread wrote");
  return Done();
}
