// A failed pthread_rwlock_trywrlock orders nothing.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Careless(void* argument) {
  pthread_rwlock_trywrlock(&lock);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  pthread_rwlock_wrlock(&lock);
  const pthread_t thread = Start(Careless, NULL);
  value = 2;  // [b]
  Join(thread);
  pthread_rwlock_unlock(&lock);
  return Done();
}
