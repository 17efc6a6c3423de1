// A ticket lock of C11 atomics: taken by fetch_add and a load, given back by a store.
// CLEAN
// BUILD O0 O2 static
#include <stdatomic.h>

#include "race.h"

static atomic_uint next, serving;
int value;

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    const unsigned own = atomic_fetch_add(&next, 1);
    while (atomic_load_explicit(&serving, memory_order_acquire) != own) usleep(100);
    value++;
    atomic_store_explicit(&serving, own + 1, memory_order_release);
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 10 ? Done() : 1;
}
