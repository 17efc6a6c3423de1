// Look under the read lock, give it back, take the write lock and look again.
// CLEAN
// BUILD O0 O2 static
#include "race.h"

int value;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Upgrades(void* argument) {
  pthread_rwlock_rdlock(&lock);
  const int missing = value == 0;
  pthread_rwlock_unlock(&lock);
  if (missing) {
    pthread_rwlock_wrlock(&lock);
    if (value == 0) value = 1;
    pthread_rwlock_unlock(&lock);
  }
  pthread_rwlock_rdlock(&lock);
  Use(value);
  pthread_rwlock_unlock(&lock);
  return argument;
}

int main(void) {
  RunTwo(Upgrades, Upgrades);
  return value == 1 ? Done() : 1;
}
