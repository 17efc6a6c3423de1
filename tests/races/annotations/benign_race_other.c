// The next variable is not part of the benign race.
// RACE any global:counters a b
// MAY-MISS shared: each place runs once
#include "annotations.h"
#include "race.h"

int counters[2];

static void* First(void* argument) {
  counters[0]++;
  Escape(counters);
  counters[1]++;  // [a]
  return argument;
}

static void* Second(void* argument) {
  counters[0]++;
  Escape(counters);
  counters[1]++;  // [b]
  return argument;
}

int main(void) {
  ANNOTATE_BENIGN_RACE_SIZED(counters, 4, "only the first one");
  RunTwo(First, Second);
  return Done();
}
