// One thread takes the spin lock, the other forgets it.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
#include "race.h"

int counter;
pthread_spinlock_t lock;

static void* Careful(void* argument) {
  pthread_spin_lock(&lock);
  counter++;  // [a]
  pthread_spin_unlock(&lock);
  return argument;
}

static void* Careless(void* argument) {
  counter++;  // [b]
  return argument;
}

int main(void) {
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  RunTwo(Careful, Careless);
  return Done();
}
