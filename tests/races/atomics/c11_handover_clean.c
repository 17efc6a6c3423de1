// _Atomic: a release store and an acquire load, both plain mov instructions; debug info tells.
// CLEAN
// TAGS fast
#include <stdatomic.h>

#include "race.h"

int value;
_Atomic int ready;

static void* Sender(void* argument) {
  value = 1;
  atomic_store_explicit(&ready, 1, memory_order_release);
  return argument;
}

static void* Receiver(void* argument) {
  while (!atomic_load_explicit(&ready, memory_order_acquire)) usleep(1000);
  value++;
  return argument;
}

int main(void) {
  RunTwo(Sender, Receiver);
  return value == 2 ? Done() : 1;
}
