// A barrier that is destroyed and made anew, for another number of threads.
// CLEAN
// BUILD O0 O2 static
#include "race.h"

int values[3];
static pthread_barrier_t barrier;

static void* Works(void* argument) {
  const long own = (long)argument % 10, threads = (long)argument / 10;
  values[own] = 1;
  pthread_barrier_wait(&barrier);
  for (long i = 0; i < threads; i++) Check(values[i] == 1);
  pthread_barrier_wait(&barrier);
  values[own] = 0;
  return NULL;
}

static void RunRound(long threads) {
  pthread_t started[3];
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (long i = 0; i < threads; i++) started[i] = Start(Works, (void*)(threads * 10 + i));
  for (long i = 0; i < threads; i++) Join(started[i]);
  pthread_barrier_destroy(&barrier);
}

static void* Rounds(void* argument) {
  RunRound(2);
  RunRound(3);
  RunRound(2);
  return argument;
}

int main(void) {
  Join(Start(Rounds, NULL));
  return Done();
}
