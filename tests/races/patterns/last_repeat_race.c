// A thread writes a word in many epochs; the reader comes after all of these writes but the last
// one.
// RACE read-write global:value a b
#include <semaphore.h>

#include "race.h"

enum { kEpochs = 50 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t ready;
static volatile int value;

static void* Writer(void* argument) {
  for (int i = 0; i <= kEpochs; i++) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    usleep(100);
    if (i == kEpochs) sem_post(&ready);
    value = i;  // [a]
  }
  return argument;
}

static void* Reader(void* argument) {
  sem_wait(&ready);
  usleep(20000);
  Use(value);  // [b]
  return argument;
}

int main(void) {
  sem_init(&ready, 0, 0);
  RunTwo(Writer, Reader);
  return Done();
}
