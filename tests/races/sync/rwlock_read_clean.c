// Readers on the read side, the writer on the write side.
// CLEAN
// BUILD O0 O2 musl
#include "race.h"

int value;
int seen;
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* Reader(void* argument) {
  for (int i = 0; i < 4; i++) {
    pthread_rwlock_rdlock(&lock);
    Use(value);
    pthread_rwlock_unlock(&lock);
  }
  return argument;
}

static void* Writer(void* argument) {
  for (int i = 0; i < 4; i++) {
    pthread_rwlock_wrlock(&lock);
    value++;
    pthread_rwlock_unlock(&lock);
  }
  return argument;
}

int main(void) {
  const pthread_t reader = Start(Reader, NULL);
  RunTwo(Reader, Writer);
  Join(reader);
  return value == 4 ? Done() : 1;
}
