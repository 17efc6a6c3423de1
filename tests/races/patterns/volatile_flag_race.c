// A volatile flag is no synchronisation: neither the flag nor what it announces is ordered.
// RACE read-write global:ready f g
// RACE any global:value a b
// MAY-MISS shared: the value is accessed once by each
#include "race.h"

int value;
volatile int ready;

static void* Sender(void* argument) {
  value = 1;  // [a]
  ready = 1;  // [f]
  return argument;
}

static void* Receiver(void* argument) {
  while (!ready) {  // [g]
    usleep(1000);
  }
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return Done();
}
