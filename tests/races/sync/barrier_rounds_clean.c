// One barrier, many rounds: each thread reads what its neighbour wrote the round before.
// CLEAN
// BUILD O0 O2 static musl
#include "race.h"

enum { kThreads = 3, kRounds = 8 };
int values[2][kThreads];
static pthread_barrier_t barrier;

static void* Works(void* argument) {
  const long own = (long)argument;
  for (int round = 0; round < kRounds; round++) {
    values[round % 2][own] = round;
    pthread_barrier_wait(&barrier);
    Check(values[round % 2][(own + 1) % kThreads] == round);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (long i = 0; i < kThreads; i++) threads[i] = Start(Works, (void*)i);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  pthread_barrier_destroy(&barrier);
  return Done();
}
