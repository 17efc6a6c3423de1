// Valgrind's client requests about different objects order nothing.
// RACE write-write global:value+0 first second
// MAY-MISS shared: each place runs once
#include "race.h"
#include "valgrind_requests.h"

int value;
static int sent, awaited;

static void* First(void* argument) {
  value = 1;  // [first]
  Request(kHappensBefore, &sent, 0);
  return argument;
}

static void* Second(void* argument) {
  Request(kHappensAfter, &awaited, 0);
  value = 2;  // [second]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
