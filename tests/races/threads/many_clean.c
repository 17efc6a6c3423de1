// 64 threads, all alive at once, add to one counter under a mutex.
// CLEAN
// BUILD O2 static
// SECONDS 60
#include "race.h"

enum { kThreads = 64 };
int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t all;

static void* Adder(void* argument) {
  pthread_barrier_wait(&all);
  pthread_mutex_lock(&mutex);
  counter++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&all, NULL, kThreads);
  for (int i = 0; i < kThreads; i++) threads[i] = Start(Adder, NULL);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  return counter == kThreads ? Done() : 1;
}
