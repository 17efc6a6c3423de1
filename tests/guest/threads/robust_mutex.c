// The owner of a robust mutex dies: a thread, and a process killed.
#include "guest.h"

static pthread_mutex_t* mutex;

static void* LockAndDie(void* argument) {
  (void)argument;
  pthread_mutex_lock(mutex);
  return NULL;
}

static void CheckOwnerDied(const char* who) {
  Fact(pthread_mutex_lock(mutex) == EOWNERDEAD, "%s died: the next owner is told", who);
  Fact(pthread_mutex_consistent(mutex) == 0, "made consistent");
  pthread_mutex_unlock(mutex);
  Fact(pthread_mutex_lock(mutex) == 0, "lock is whole again");
  pthread_mutex_unlock(mutex);
}

int main(void) {
  mutex = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(mutex, &attributes);

  pthread_join(Start(LockAndDie, NULL), NULL);
  CheckOwnerDied("a thread");

  int ready[2];
  if (pipe(ready) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(mutex);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  Fact(read(ready[0], &byte, 1) == 1, "child holds the lock");
  kill(child, SIGKILL);
  CheckOwnerDied("a process");
  Fact(WTERMSIG(Reap(child)) == SIGKILL, "child was killed");

  // A waiter is woken by the death.
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  pthread_mutex_t* second = mutex + 1;
  pthread_mutex_init(second, &attributes);
  const pid_t waker = fork();
  if (waker == 0) {
    pthread_mutex_lock(second);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    SleepMs(50);
    _exit(0);
  }
  if (read(ready[0], &byte, 1) != 1) return 1;
  Fact(pthread_mutex_lock(second) == EOWNERDEAD, "a waiter is woken by the owner's death");
  Reap(waker);
  return Done();
}
