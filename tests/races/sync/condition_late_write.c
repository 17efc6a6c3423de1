// The sender writes what it announces only after it has announced it.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "race.h"

int value;
int ready;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Sender(void* argument) {
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  value = 1;  // [a]
  return argument;
}

static void* Receiver(void* argument) {
  pthread_mutex_lock(&mutex);
  while (!ready) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return Done();
}
