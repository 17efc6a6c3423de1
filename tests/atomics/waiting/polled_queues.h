// Workers that poll a word of their own for work, by the processor's clock, and go to sleep after a
// while; who gives work waits for each to be done. All by atomics that are compiled to plain moves.
#pragma once

#include <stdatomic.h>
#include <x86intrin.h>

#include "race.h"

enum { kWorkers = 3, kRounds = 20, kNumbers = 100 };

struct Work {
  long* numbers;
  int count;
};

static struct Worker {
  _Atomic(struct Work*) work;
  int sleeps;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  long numbers[kNumbers];
} workers[kWorkers];

static struct Work quit;

static void Do(const struct Work* work);

static struct Work* WorkOf(struct Worker* self) {
  return atomic_load_explicit(&self->work, memory_order_acquire);
}

static void SleepUntilWork(struct Worker* self) {
  pthread_mutex_lock(&self->mutex);
  self->sleeps = 1;
  while (self->sleeps && WorkOf(self) == NULL) pthread_cond_wait(&self->wake, &self->mutex);
  pthread_mutex_unlock(&self->mutex);
}

static void* Works(void* argument) {
  struct Worker* const self = argument;
  for (;;) {
    unsigned long last = __rdtsc();
    struct Work* work;
    while ((work = WorkOf(self)) == NULL) {
      if (__rdtsc() - last <= 1 << 20) continue;
      if (WorkOf(self) == NULL) SleepUntilWork(self);
      last = __rdtsc();
    }
    if (work == &quit) return NULL;
    Do(work);
    atomic_store_explicit(&self->work, NULL, memory_order_release);
  }
}

static void Give(struct Worker* worker, struct Work* work) {
  atomic_store_explicit(&worker->work, work, memory_order_release);
  pthread_mutex_lock(&worker->mutex);
  if (worker->sleeps) {
    worker->sleeps = 0;
    pthread_cond_signal(&worker->wake);
  }
  pthread_mutex_unlock(&worker->mutex);
}

static void WaitForAll(void) {
  for (int i = 0; i < kWorkers; i++) {
    while (WorkOf(&workers[i]) != NULL) {
    }
  }
}

static pthread_t threads[kWorkers];

static void StartWorkers(void) {
  for (int i = 0; i < kWorkers; i++) {
    pthread_mutex_init(&workers[i].mutex, NULL);
    pthread_cond_init(&workers[i].wake, NULL);
    threads[i] = Start(Works, &workers[i]);
  }
}

// `work`: one for each worker.
static void GiveAll(struct Work* work) {
  for (int i = 0; i < kWorkers; i++) {
    work[i] = (struct Work){workers[i].numbers, kNumbers};
    Give(&workers[i], &work[i]);
  }
}

static void EndWorkers(void) {
  for (int i = 0; i < kWorkers; i++) Give(&workers[i], &quit);
  for (int i = 0; i < kWorkers; i++) Join(threads[i]);
}
