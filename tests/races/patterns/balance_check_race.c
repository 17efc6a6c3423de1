// The writers hold the mutex, the reader believes one word needs none.
// RACE read-write global:balance a b
// MAY-MISS shared: each place runs once
#include "race.h"

int balance = 10;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Writer(void* argument) {
  pthread_mutex_lock(&mutex);
  balance = 12;  // [a]
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Reader(void* argument) {
  Use(balance);  // [b]
  return argument;
}

int main(void) {
  RunTwo(Writer, Reader);
  return Done();
}
