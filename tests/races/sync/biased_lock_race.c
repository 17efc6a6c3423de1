// One thread has taken a lock many times, the last ones untold, and writes after it has given it
// back. The other one takes the lock later: that orders what was done under the lock, and no more.
// OPTIONS --repeats-after=0
// RACE write-write global:after a b
// LOCKS b 1
// MAY-MISS shared: each place runs once
#include <semaphore.h>

#include "announce.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int under, after;
static sem_t ends;

static void* Often(void* argument) {
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&mutex);
    under++;
    pthread_mutex_unlock(&mutex);
  }
  after = 1;  // [a]
  Announce();
  sem_wait(&ends);
  return argument;
}

int main(void) {
  sem_init(&ends, 0, 0);
  const rlim_t before = Announced();
  const pthread_t often = Start(Often, NULL);
  AwaitAnnouncement(before);
  pthread_mutex_lock(&mutex);
  under++;
  after = 2;  // [b]
  pthread_mutex_unlock(&mutex);
  sem_post(&ends);
  Join(often);
  return Done();
}
