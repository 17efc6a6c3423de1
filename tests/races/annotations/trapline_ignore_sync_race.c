// client.h: a mutex that is told to order nothing.
// RACE any global:counter a a
// MAY-MISS shared: the place runs once in each thread
// TSAN-DIFFERS it does not know client.h
#include "race.h"
#include "trapline/client.h"

int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void Add(void) {
  trapline_ignore_sync_begin();
  pthread_mutex_lock(&mutex);
  trapline_ignore_sync_end();
  counter++;  // [a]
  trapline_ignore_sync_begin();
  pthread_mutex_unlock(&mutex);
  trapline_ignore_sync_end();
}

static void* First(void* argument) {
  Add();
  return argument;
}

static void* Second(void* argument) {
  Add();
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
