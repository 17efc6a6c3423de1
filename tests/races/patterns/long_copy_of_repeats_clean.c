// One thread works on an array again and again, the other one copies over all of it, in turn under
// a mutex: what the first has repeated undisturbed ends at once, and is more than fits a queue of
// events.
// CLEAN
#include <string.h>

#include "race.h"

enum { kWords = 1 << 14 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int data[kWords], other[kWords];

static void* Work(void* argument) {
  for (int round = 0; round < 60; round++) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < kWords; i++) data[i] += i;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

static void* Copy(void* argument) {
  for (int round = 0; round < 20; round++) {
    pthread_mutex_lock(&mutex);
    memcpy(data, other, sizeof data);
    memset(data, round, sizeof data / 2);
    pthread_mutex_unlock(&mutex);
    usleep(2000);
  }
  return argument;
}

int main(void) {
  RunTwo(Work, Copy);
  return Done();
}
