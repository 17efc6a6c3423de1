// 64 threads, all alive at once, and one of them forgets the mutex.
// RACE any global:counter a b
// BUILD O2 static
// SECONDS 60
// MAY-MISS shared: each place runs once in a thread
#include "race.h"

enum { kThreads = 64 };
int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t all;

static void* Adder(void* argument) {
  pthread_barrier_wait(&all);
  pthread_mutex_lock(&mutex);
  counter++;  // [a]
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Forgetful(void* argument) {
  pthread_barrier_wait(&all);
  counter++;  // [b]
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&all, NULL, kThreads);
  for (int i = 0; i < kThreads; i++) threads[i] = Start(i == 40 ? Forgetful : Adder, NULL);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  return Done();
}
