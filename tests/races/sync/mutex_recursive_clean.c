// A recursive mutex is released by the last unlock only.
// CLEAN
#include "race.h"

int counter;
pthread_mutex_t mutex;

static void Add(int depth) {
  pthread_mutex_lock(&mutex);
  counter++;
  if (depth > 0) Add(depth - 1);
  counter++;
  pthread_mutex_unlock(&mutex);
}

static void* Adder(void* argument) {
  Add(2);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &attributes);
  RunTwo(Adder, Adder);
  pthread_mutex_destroy(&mutex);
  return counter == 12 ? Done() : 1;
}
