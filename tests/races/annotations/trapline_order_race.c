// client.h: two keys.
// RACE any global:value a b
// BUILD O0 O2 static
// MAY-MISS shared: each place runs once
#include "race.h"
#include "trapline/client.h"

int value;
int keys[2];

static void* First(void* argument) {
  value = 1;  // [a]
  trapline_happens_before(&keys[0]);
  return argument;
}

static void* Second(void* argument) {
  trapline_happens_after(&keys[1]);
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
