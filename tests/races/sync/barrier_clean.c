// Threads swap their elements between the phases of a barrier.
// CLEAN
#include "race.h"

enum { kThreads = 3 };
int elements[kThreads];
pthread_barrier_t barrier;

static void* Worker(void* argument) {
  const int index = (int)(long)argument;
  for (int phase = 0; phase < kThreads; phase++) {
    elements[(index + phase) % kThreads]++;
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (long i = 0; i < kThreads; i++) threads[i] = Start(Worker, (void*)i);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  pthread_barrier_destroy(&barrier);
  return elements[0] == kThreads ? Done() : 1;
}
