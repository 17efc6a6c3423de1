// Producers and a consumer around a bounded queue with a mutex and two condition variables.
// CLEAN
#include "race.h"

enum { kSlots = 2, kItems = 4 };
int* slots[kSlots];
int used;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;

static void* Producer(void* argument) {
  for (int i = 0; i < kItems; i++) {
    int* item = (int*)malloc(sizeof(int));
    *item = i;
    pthread_mutex_lock(&mutex);
    while (used == kSlots) pthread_cond_wait(&not_full, &mutex);
    slots[used++] = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

static void* Consumer(void* argument) {
  int sum = 0;
  for (int i = 0; i < 2 * kItems; i++) {
    pthread_mutex_lock(&mutex);
    while (used == 0) pthread_cond_wait(&not_empty, &mutex);
    int* item = slots[--used];
    pthread_cond_broadcast(&not_full);
    pthread_mutex_unlock(&mutex);
    sum += *item;
    free(item);
  }
  *(int*)argument = sum;
  return NULL;
}

int main(void) {
  int sum = 0;
  const pthread_t consumer = Start(Consumer, &sum);
  RunTwo(Producer, Producer);
  Join(consumer);
  return sum == kItems * (kItems - 1) ? Done() : 1;
}
