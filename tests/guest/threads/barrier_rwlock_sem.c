#include <semaphore.h>

#include "guest.h"

static pthread_barrier_t barrier;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int serial;
static int shared_value[2];
static int torn;
static int inside;
static int most;

static void* Work(void* argument) {
  const int self = (int)(intptr_t)argument;
  for (int i = 0; i < 100; ++i) {
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) Add(&serial, 1);
    if (self == 0) {
      pthread_rwlock_wrlock(&lock);
      ++shared_value[0];
      sched_yield();
      ++shared_value[1];
    } else {
      pthread_rwlock_rdlock(&lock);
      if (shared_value[0] != shared_value[1]) Add(&torn, 1);
    }
    pthread_rwlock_unlock(&lock);
    while (sem_wait(&semaphore) != 0) {
    }
    const int now = Add(&inside, 1);
    if (now > Load(&most)) Store(&most, now);
    Add(&inside, -1);
    sem_post(&semaphore);
  }
  return NULL;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, 4);
  sem_init(&semaphore, 0, 2);
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Work, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(serial == 100, "100 barriers, one serial thread each");
  Fact(torn == 0 && shared_value[1] == 100, "readers never saw half a write");
  Fact(most <= 2, "never more than 2 past the semaphore");
  return Done();
}
