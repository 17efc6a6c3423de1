// pthread_rwlock_trywrlock orders when it succeeds.
// CLEAN
#include "race.h"

int counter;
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Adder(void* argument) {
  for (int i = 0; i < 5; i++) {
    while (pthread_rwlock_trywrlock(&lock) != 0) usleep(1000);
    counter++;
    pthread_rwlock_unlock(&lock);
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 10 ? Done() : 1;
}
