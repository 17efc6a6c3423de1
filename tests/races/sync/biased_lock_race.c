// One thread has taken a lock many times, the last ones untold, and writes after it has given it
// back. The other one takes the lock later: that orders what was done under the lock, and no more.
// OPTIONS --repeats-after=0
// RACE write-write global:after a b
// LOCKS b 1
// MAY-MISS shared: each place runs once
#include <semaphore.h>
#include <sys/resource.h>

#include "race.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int under, after;
static sem_t ends;

// A limit of the process, by which the threads tell each other something that orders nothing.
static void Announce(void) {
  struct rlimit limit;
  Check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur--;
  Check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}
static rlim_t Announced(void) {
  struct rlimit limit;
  Check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

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
  while (Announced() == before) usleep(1000);
  pthread_mutex_lock(&mutex);
  under++;
  after = 2;  // [b]
  pthread_mutex_unlock(&mutex);
  sem_post(&ends);
  Join(often);
  return Done();
}
