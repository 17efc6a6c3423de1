// Parent and children share anonymous memory: atomics, futexes and process-shared pthread objects
// work across.
#include <linux/futex.h>
#include <semaphore.h>

#include "guest.h"

struct Shared {
  int turn;
  int counter;
  sem_t semaphore;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  pthread_barrier_t barrier;
  int plain;
  int flag;
};
static struct Shared* shared;

static void Wait(int value) {
  int seen;
  while ((seen = Load(&shared->turn)) != value)
    syscall(SYS_futex, &shared->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
}
static void Pass(int value) {
  Store(&shared->turn, value);
  syscall(SYS_futex, &shared->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int main(void) {
  shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sem_init(&shared->semaphore, 1, 0);
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->condition, &condition);
  pthread_barrierattr_t barrier;
  pthread_barrierattr_init(&barrier);
  pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &barrier, 2);
  const pid_t child = fork();
  const int self = child == 0;
  for (int i = 0; i < 100; ++i) {
    Wait(i * 2 + self);
    ++shared->counter;
    Pass(i * 2 + self + 1);
  }
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&shared->mutex);
    ++shared->plain;
    pthread_mutex_unlock(&shared->mutex);
  }
  pthread_barrier_wait(&shared->barrier);
  if (child == 0) {
    pthread_mutex_lock(&shared->mutex);
    shared->flag = 1;
    pthread_cond_signal(&shared->condition);
    pthread_mutex_unlock(&shared->mutex);
    sem_post(&shared->semaphore);
    _exit(0);
  }
  Fact(shared->counter == 200, "200 turns by shared futex");
  Fact(shared->plain == 2000, "2000 increments under a shared mutex");
  pthread_mutex_lock(&shared->mutex);
  while (!shared->flag) pthread_cond_wait(&shared->condition, &shared->mutex);
  pthread_mutex_unlock(&shared->mutex);
  Fact(sem_wait(&shared->semaphore) == 0, "shared condition and semaphore");
  Fact(Reap(child) == 0, "child done");
  return Done();
}
