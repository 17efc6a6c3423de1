// Clean-up handlers of a cancelled thread run before the join returns; they give a mutex back.
// CLEAN
// BUILD O0 O2 static
#include "race.h"

int value, waiting;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void CleanUp(void* argument) {
  value++;
  pthread_mutex_unlock(&mutex);
}

static void* Waits(void* argument) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(CleanUp, NULL);
  waiting = 1;
  for (;;) pthread_cond_wait(&never, &mutex);
  pthread_cleanup_pop(1);
  return argument;
}

int main(void) {
  const pthread_t waiter = Start(Waits, NULL);
  for (int seen = 0; !seen;) {
    pthread_mutex_lock(&mutex);
    seen = waiting;
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  value++;
  pthread_mutex_unlock(&mutex);
  pthread_cancel(waiter);
  void* result = NULL;
  Check(pthread_join(waiter, &result) == 0 && result == PTHREAD_CANCELED);
  value++;
  return value == 3 ? Done() : 1;
}
