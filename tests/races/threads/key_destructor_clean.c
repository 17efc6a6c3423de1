// Keys' destructors run before the thread can be joined.
// CLEAN
#include "race.h"

pthread_key_t key;

static void Destroy(void* block) {
  *(int*)block = 0;
  free(block);
}

static void* Worker(void* argument) {
  int* block = (int*)malloc(sizeof(int));
  *block = 1;
  Check(pthread_setspecific(key, block) == 0);
  ++*(int*)argument;
  return NULL;
}

int main(void) {
  int runs = 0;
  Check(pthread_key_create(&key, Destroy) == 0);
  Join(Start(Worker, &runs));
  Join(Start(Worker, &runs));
  pthread_key_delete(key);
  return runs == 2 ? Done() : 1;
}
