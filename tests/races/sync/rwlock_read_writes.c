// Writing under the read side: readers are not ordered with each other.
// RACE any global:value a a
// MAY-MISS shared: the place runs once in each thread
// BUILD O0 O2 musl
#include "race.h"

int value;
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Writer(void* argument) {
  pthread_rwlock_rdlock(&lock);
  value++;  // [a]
  pthread_rwlock_unlock(&lock);
  return argument;
}

int main(void) {
  RunTwo(Writer, Writer);
  return Done();
}
