// A condition variable with its mutex and its predicate.
// CLEAN
#include "race.h"

int value;
int ready;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Sender(void* argument) {
  value = 1;
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Receiver(void* argument) {
  pthread_mutex_lock(&mutex);
  while (!ready) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return value == 2 ? Done() : 1;
}
