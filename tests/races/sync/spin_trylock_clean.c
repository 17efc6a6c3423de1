// pthread_spin_trylock orders when it succeeds.
// CLEAN
#include "race.h"

int counter;
pthread_spinlock_t lock;

static void* Adder(void* argument) {
  for (int i = 0; i < 5; i++) {
    while (pthread_spin_trylock(&lock) != 0) usleep(1000);
    counter++;
    pthread_spin_unlock(&lock);
  }
  return argument;
}

int main(void) {
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  RunTwo(Adder, Adder);
  return counter == 10 ? Done() : 1;
}
