// A mutex destroyed and initialised anew at the same address is a new one and works.
// CLEAN
#include "race.h"

int counter;
pthread_mutex_t mutex;

static void* Adder(void* argument) {
  pthread_mutex_lock(&mutex);
  counter++;
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_init(&mutex, NULL);
    RunTwo(Adder, Adder);
    pthread_mutex_destroy(&mutex);
  }
  return counter == 6 ? Done() : 1;
}
