// memset of a structure whose counter another thread uses atomically.
// RACE atomic-plain global:statistics a b
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

static struct {
  long other[3];
  long counter;
} statistics;

static void* Counts(void* argument) {
  __atomic_fetch_add(&statistics.counter, 1, __ATOMIC_RELAXED);  // [a]
  return argument;
}

static void* Clears(void* argument) {
  memset(&statistics, 0, Opaque(sizeof statistics));  // [b]
  return argument;
}

int main(void) {
  RunTwo(Counts, Clears);
  return Done();
}
