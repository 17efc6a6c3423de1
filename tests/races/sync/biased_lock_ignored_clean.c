// One thread has taken a lock many times, the last ones untold. An annotation ends all that is left
// untold, and a thread that starts after that takes the lock.
// OPTIONS --repeats-after=0
// CLEAN
#include <semaphore.h>

#include "../annotations.h"
#include "announce.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int under;
static sem_t ends;

static void Add(void) {
  pthread_mutex_lock(&mutex);
  under++;
  pthread_mutex_unlock(&mutex);
}

static void* Often(void* argument) {
  for (int i = 0; i < 100; i++) Add();
  Announce();
  sem_wait(&ends);
  return argument;
}

static void* Late(void* argument) {
  Add();
  return argument;
}

int main(void) {
  sem_init(&ends, 0, 0);
  const rlim_t before = Announced();
  const pthread_t often = Start(Often, NULL);
  AwaitAnnouncement(before);
  ANNOTATE_IGNORE_READS_BEGIN();
  ANNOTATE_IGNORE_READS_END();
  Join(Start(Late, NULL));
  sem_post(&ends);
  Join(often);
  return Done();
}
