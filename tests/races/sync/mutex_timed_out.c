// pthread_mutex_timedlock ran out of time: the mutex is not held.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "race.h"

int value;
sem_t tried;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Impatient(void* argument) {
  const struct timespec past = {1, 0};
  Check(pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
  sem_post(&tried);
  value = 1;  // [a]
  return argument;
}

int main(void) {
  sem_init(&tried, 0, 0);
  pthread_mutex_lock(&mutex);
  const pthread_t thread = Start(Impatient, NULL);
  sem_wait(&tried);
  value = 2;  // [b]
  pthread_mutex_unlock(&mutex);
  Join(thread);
  return Done();
}
