// Counters that one thread changes, by an atomic load and an atomic store: clang makes one update
// without lock prefix of both.
// CLEAN
// BUILD O2 clang-O2
// TAGS fast
#include <stdatomic.h>

#include "race.h"

static long counted;
static atomic_long* counter;

static void* Count(void* argument) {
  for (int i = 0; i < 200; i++) {
    __atomic_store_n(&counted, __atomic_load_n(&counted, __ATOMIC_RELAXED) + 2, __ATOMIC_RELAXED);
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
  }
  return argument;
}

static void* Look(void* sum) {
  for (int i = 0; i < 200; i++) {
    *(long*)sum = __atomic_load_n(&counted, __ATOMIC_RELAXED) +
                  atomic_load_explicit(counter, memory_order_relaxed);
  }
  return NULL;
}

int main(void) {
  counter = calloc(1, sizeof *counter);
  long sum = 0;
  const pthread_t counts = Start(Count, NULL), looks = Start(Look, &sum);
  Join(counts);
  Join(looks);
  return counted == 400 && *counter == 200 && sum <= 600 ? Done() : 1;
}
