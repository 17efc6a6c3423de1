// Locks, semaphores and barriers in a file that is mapped twice are the same ones at both places,
// as for two parts of a program that each open a named segment.
// CLEAN
// TSAN-DIFFERS it takes two addresses for two places
#include <semaphore.h>
#include <sys/mman.h>

#include "race.h"

static struct Shared {
  pthread_mutex_t mutex;
  pthread_rwlock_t readers_writer;
  pthread_spinlock_t spin;
  sem_t one, given;
  pthread_barrier_t barrier;
  int by_mutex, by_readers_writer, by_spin, by_semaphore, before_barrier, before_given;
} * views[2];

static void* Worker(void* argument) {
  struct Shared* const view = argument;
  for (int i = 0; i < 50; i++) {
    pthread_mutex_lock(&view->mutex);
    view->by_mutex++;
    pthread_mutex_unlock(&view->mutex);
    pthread_rwlock_wrlock(&view->readers_writer);
    view->by_readers_writer++;
    pthread_rwlock_unlock(&view->readers_writer);
    pthread_spin_lock(&view->spin);
    view->by_spin++;
    pthread_spin_unlock(&view->spin);
    sem_wait(&view->one);
    view->by_semaphore++;
    sem_post(&view->one);
    if (i % 10 == 0) sched_yield();
  }
  const int first = view == views[0];
  if (first) view->before_barrier = 1;
  pthread_barrier_wait(&view->barrier);
  if (!first) {
    view->before_barrier++;
    view->before_given = 1;
    sem_post(&view->given);
  } else {
    sem_wait(&view->given);
    view->before_given++;
  }
  return NULL;
}

int main(void) {
  const int file = memfd_create("views", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  for (int i = 0; i < 2; i++) {
    views[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    Check(views[i] != MAP_FAILED);
  }
  // Shared, or who waits at one place is not woken from the other.
  pthread_mutexattr_t of_mutex;
  pthread_rwlockattr_t of_readers_writer;
  pthread_barrierattr_t of_barrier;
  pthread_mutexattr_init(&of_mutex);
  pthread_rwlockattr_init(&of_readers_writer);
  pthread_barrierattr_init(&of_barrier);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_rwlockattr_setpshared(&of_readers_writer, PTHREAD_PROCESS_SHARED);
  pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
  struct Shared* const view = views[0];
  pthread_mutex_init(&view->mutex, &of_mutex);
  pthread_rwlock_init(&view->readers_writer, &of_readers_writer);
  pthread_spin_init(&view->spin, PTHREAD_PROCESS_SHARED);
  sem_init(&view->one, 1, 1);
  sem_init(&view->given, 1, 0);
  pthread_barrier_init(&view->barrier, &of_barrier, 2);
  const pthread_t one = Start(Worker, views[0]), other = Start(Worker, views[1]);
  Join(one);
  Join(other);
  Check(view->by_mutex == 100 && view->before_barrier == 2 && view->before_given == 2);
  return Done();
}
