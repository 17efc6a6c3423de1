// A normal mutex orders its critical sections.
// CLEAN
#include "race.h"

int counter;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Adder(void* argument) {
  for (int i = 0; i < 5; i++) {
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  RunTwo(Adder, Adder);
  return counter == 10 ? Done() : 1;
}
