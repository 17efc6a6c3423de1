// The write side of a rwlock orders its critical sections.
// CLEAN
// BUILD O0 O2 musl
#include "race.h"

int counter;
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Adder(void* argument) {
  for (int i = 0; i < 5; i++) {
    pthread_rwlock_wrlock(&lock);
    counter++;
    pthread_rwlock_unlock(&lock);
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 10 ? Done() : 1;
}
