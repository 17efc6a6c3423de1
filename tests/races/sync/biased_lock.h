// A thread that has taken a lock many times, the last ones untold, and is still there.
#ifndef TRAPLINE_TESTS_RACES_SYNC_BIASED_LOCK_H_
#define TRAPLINE_TESTS_RACES_SYNC_BIASED_LOCK_H_

#include <semaphore.h>

#include "announce.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int under;
static sem_t ends;

static void AfterLast(void);  // the thread has given back the lock for the last time

static void Add(void) {
  pthread_mutex_lock(&mutex);
  under++;
  pthread_mutex_unlock(&mutex);
}

static void* Often(void* argument) {
  for (int i = 0; i < 100; i++) Add();
  AfterLast();
  Announce();
  sem_wait(&ends);
  return argument;
}

// What another thread does then, unordered with it.
static void RunAfterOften(void (*then)(void)) {
  sem_init(&ends, 0, 0);
  const rlim_t before = Announced();
  const pthread_t often = Start(Often, NULL);
  AwaitAnnouncement(before);
  then();
  sem_post(&ends);
  Join(often);
}

#endif  // TRAPLINE_TESTS_RACES_SYNC_BIASED_LOCK_H_
