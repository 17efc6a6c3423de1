// Relaxed counters, read once all threads have ended.
// CLEAN
#include <stdatomic.h>

#include "race.h"

static atomic_long counter;
static _Atomic int largest;

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
    int seen = atomic_load_explicit(&largest, memory_order_relaxed);
    while (seen < i && !atomic_compare_exchange_weak_explicit(
                           &largest, &seen, i, memory_order_relaxed, memory_order_relaxed)) {
    }
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return counter == 10 && largest == 4 ? Done() : 1;
}
