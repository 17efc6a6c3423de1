#include "guest.h"

enum { kThreads = 1000 };
static int arrived;
static int leave;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* Wait(void* argument) {
  pthread_mutex_lock(&mutex);
  if (++arrived == kThreads) pthread_cond_broadcast(&condition);
  while (!leave) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  static pthread_t threads[kThreads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  int created = 0;
  for (intptr_t i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], &attributes, Wait, (void*)(i + 1)) != 0) break;
    ++created;
  }
  Fact(created == kThreads, "1000 threads created");
  if (created != kThreads) return 1;
  pthread_mutex_lock(&mutex);
  while (arrived != kThreads) pthread_cond_wait(&condition, &mutex);
  leave = 1;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  intptr_t sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (intptr_t)result;
  }
  Fact(sum == 500500, "all lived at once and returned");
  return Done();
}
