// The producer goes on writing to an item that it has put into the queue.
// RACE any heap:8 a b
// MAY-MISS shared: each place runs once
#include <semaphore.h>

#include "race.h"

struct Item {
  int number;
  int total;
};
struct Item* slot;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
sem_t items;

static void* Producer(void* argument) {
  struct Item* item = (struct Item*)calloc(1, sizeof(*item));
  pthread_mutex_lock(&mutex);
  slot = item;
  pthread_mutex_unlock(&mutex);
  sem_post(&items);
  item->total = 1;  // [a]
  return argument;
}

static void* Consumer(void* argument) {
  sem_wait(&items);
  pthread_mutex_lock(&mutex);
  struct Item* item = slot;
  pthread_mutex_unlock(&mutex);
  item->total++;  // [b]
  return argument;
}

int main(void) {
  sem_init(&items, 0, 0);
  RunTwo(Producer, Consumer);
  free(slot);
  return Done();
}
