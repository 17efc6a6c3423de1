// A thread that does not look whether pthread_mutex_trylock succeeded: it did not.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Careless(void* argument) {
  pthread_mutex_trylock(&mutex);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  pthread_mutex_lock(&mutex);
  const pthread_t thread = Start(Careless, NULL);
  value = 2;  // [b]
  Join(thread);
  pthread_mutex_unlock(&mutex);
  return Done();
}
