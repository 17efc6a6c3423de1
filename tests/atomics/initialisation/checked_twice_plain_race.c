// Double-checked locking with a plain flag: the first check is unordered with the assignment.
// RACE read-write global:initialised a b
// ALSO any c d
// MAY-MISS shared: each place runs once
#include "race.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int initialised;
int value;

static void* Initialises(void* argument) {
  pthread_mutex_lock(&mutex);
  value = 3;  // [c]
  Escape(&value);
  initialised = 1;  // [b]
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Looks(void* argument) {
  if (initialised) {  // [a]
    Use(value);       // [d]
  }
  return argument;
}

int main(void) {
  RunTwo(Initialises, Looks);
  return Done();
}
