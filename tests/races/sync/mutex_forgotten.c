// One thread takes the mutex, the other forgets it.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
// BUILD O0 O2 static fixed stripped
// LOCKS a 1
// TAGS fast
#include "race.h"

int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Careful(void* argument) {
  pthread_mutex_lock(&mutex);
  counter++;  // [a]
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Careless(void* argument) {
  counter++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Careful, Careless);
  return Done();
}
