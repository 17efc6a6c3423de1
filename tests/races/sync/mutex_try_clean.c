// pthread_mutex_trylock orders when it succeeds.
// CLEAN
#include "race.h"

int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Adder(void* argument) {
  for (int i = 0; i < 5; i++) {
    while (pthread_mutex_trylock(&mutex) != 0) usleep(1000);
    counter++;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 10 ? Done() : 1;
}
