// One barrier, one buffer: the next round's write meets the neighbour's read of this round.
// RACE read-write global:values write read
#include "race.h"

enum { kThreads = 3, kRounds = 3 };
int values[kThreads];
static pthread_barrier_t barrier;

static void* Works(void* argument) {
  const long own = (long)argument;
  for (int round = 0; round < kRounds; round++) {
    values[own] = round;  // [write]
    pthread_barrier_wait(&barrier);
    Use(values[(own + 1) % kThreads]);  // [read]
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (long i = 0; i < kThreads; i++) threads[i] = Start(Works, (void*)i);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  return Done();
}
