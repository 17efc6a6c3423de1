/* C11 threads as libraries bring them along for systems without: success is 1. */
#include <pthread.h>
#include <stdlib.h>

typedef int (*Start)(void*);
struct Call {
  Start start;
  void* argument;
};

int thrd_create(pthread_t* thread, Start start, void* argument);
int thrd_join(pthread_t thread, int* result);
int mtx_lock(pthread_mutex_t* mutex);
int mtx_unlock(pthread_mutex_t* mutex);

static void* Run(void* argument) {
  struct Call call = *(struct Call*)argument;
  free(argument);
  return (void*)(long)call.start(call.argument);
}

int thrd_create(pthread_t* thread, Start start, void* argument) {
  struct Call* call = malloc(sizeof(*call));
  call->start = start;
  call->argument = argument;
  return pthread_create(thread, NULL, Run, call) == 0 ? 1 : 0;
}

int thrd_join(pthread_t thread, int* result) {
  void* value = NULL;
  int joined = pthread_join(thread, &value) == 0;
  if (joined && result) *result = (int)(long)value;
  return joined;
}

int mtx_lock(pthread_mutex_t* mutex) { return pthread_mutex_lock(mutex) == 0; }
int mtx_unlock(pthread_mutex_t* mutex) { return pthread_mutex_unlock(mutex) == 0; }
