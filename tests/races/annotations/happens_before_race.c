// The annotations name different addresses.
// RACE any global:value a b
// MAY-MISS shared: each place runs once
#include "annotations.h"
#include "race.h"

int value;
int here;
int there;

static void* First(void* argument) {
  value = 1;  // [a]
  ANNOTATE_HAPPENS_BEFORE(&here);
  return argument;
}

static void* Second(void* argument) {
  ANNOTATE_HAPPENS_AFTER(&there);
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
