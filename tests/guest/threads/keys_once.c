#include "guest.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int inits;
static int destroyed;

static void Destroy(void* value) {
  Add(&destroyed, *(int*)value);
  free(value);
}
static void Init(void) {
  ++inits;
  SleepMs(2);
  pthread_key_create(&key, Destroy);
}

static void* Use(void* argument) {
  pthread_once(&once, Init);
  int* value = malloc(sizeof(int));
  *value = (int)(intptr_t)argument;
  const bool empty = pthread_getspecific(key) == NULL;
  pthread_setspecific(key, value);
  return (void*)(intptr_t)(empty && pthread_getspecific(key) == value);
}

int main(void) {
  pthread_t threads[8];
  int good = 0;
  for (intptr_t i = 0; i < 8; ++i) threads[i] = Start(Use, (void*)(i + 1));
  for (int i = 0; i < 8; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    good += result != NULL;
  }
  Fact(inits == 1, "initialised once");
  Fact(good == 8, "values of their own");
  Fact(destroyed == 36, "destructors ran at each thread's end");
  return Done();
}
