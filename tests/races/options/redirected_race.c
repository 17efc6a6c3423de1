// Native code that meets a shared page goes over to the code cache without leaving the guest, some
// 2,000 times before the race: it is found, with the calls that lead there.
// RACE write-write global:met+4096 a a
// OPTIONS --policy=shared --redirects=always --hot-after=1
// SAYS #1 Middle
// SAYS #2 Outer
// SAYS #3 Run
// TSAN-DIFFERS it has no such options
// TAGS fast
#include "race.h"

enum { kRounds = 2500, kRacing = 2000, kWords = 512 };

static volatile long met[2][kWords] __attribute__((aligned(4096)));
static volatile long own[2][kWords] __attribute__((aligned(4096)));

__attribute__((noinline)) static void Inner(long self, int round) {
  if (round < kRacing) {
    met[0][self] = round;
  } else {
    met[1][0] = round;  // [a]
  }
  __asm__ volatile("");
}
__attribute__((noinline)) static void Middle(long self, int round) {
  Inner(self, round);
  __asm__ volatile("");
}
__attribute__((noinline)) static void Outer(long self, int round) {
  Middle(self, round);
  __asm__ volatile("");
}

static pthread_barrier_t both;

static void* Run(void* argument) {
  const long self = (long)argument;
  pthread_mutex_t unshared = PTHREAD_MUTEX_INITIALIZER;
  met[1][1 + self] = 1;  // every policy knows the page as shared
  pthread_barrier_wait(&both);
  for (int round = 0; round < kRounds; ++round) {
    own[self][round % kWords] += round;
    pthread_mutex_lock(&unshared);  // orders nothing, and ends the epoch
    pthread_mutex_unlock(&unshared);
    Outer(self, round);
  }
  return NULL;
}

int main(void) {
  pthread_barrier_init(&both, NULL, 2);
  pthread_t threads[2];
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Run, (void*)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return 0;
}
