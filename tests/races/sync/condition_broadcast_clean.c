// A broadcast with timed waits; the mutex that the wait takes back orders.
// CLEAN
#include <time.h>

#include "race.h"

int value;
int ready;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Receiver(void* argument) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  pthread_mutex_lock(&mutex);
  while (!ready) Check(pthread_cond_timedwait(&condition, &mutex, &end) == 0);
  value++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) threads[i] = Start(Receiver, NULL);
  pthread_mutex_lock(&mutex);
  value = 1;
  ready = 1;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 3; i++) Join(threads[i]);
  return value == 4 ? Done() : 1;
}
