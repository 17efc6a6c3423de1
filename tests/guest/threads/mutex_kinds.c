#include "guest.h"

static pthread_mutex_t mutex;

static void* TryLock(void* argument) {
  (void)argument;
  return (void*)(intptr_t)pthread_mutex_trylock(&mutex);
}

static void Init(int type, int protocol) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  pthread_mutex_init(&mutex, &attributes);
}

static int counter;
static void* Count(void* argument) {
  for (int i = 0; i < 2000; ++i) {
    pthread_mutex_lock(&mutex);
    ++counter;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  void* result;
  Init(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE);
  Fact(pthread_mutex_unlock(&mutex) == EPERM, "error checking: unlocking what one does not hold");
  pthread_mutex_lock(&mutex);
  Fact(pthread_mutex_lock(&mutex) == EDEADLK, "error checking: locking twice");
  pthread_join(Start(TryLock, NULL), &result);
  Fact((intptr_t)result == EBUSY, "busy for another thread");
  pthread_mutex_unlock(&mutex);
  Init(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
  pthread_mutex_lock(&mutex);
  Fact(pthread_mutex_lock(&mutex) == 0, "recursive: locking twice");
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&mutex);
  const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};
  for (int i = 0; i < 2; ++i) {
    Init(PTHREAD_MUTEX_NORMAL, protocols[i]);
    counter = 0;
    pthread_t threads[4];
    for (int j = 0; j < 4; ++j) threads[j] = Start(Count, NULL);
    for (int j = 0; j < 4; ++j) pthread_join(threads[j], NULL);
    Fact(counter == 8000, "4 threads counted to 8000, %s",
         i == 0 ? "plain" : "priority inheritance");
  }
  return Done();
}
