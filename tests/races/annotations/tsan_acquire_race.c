// __tsan_acquire alone orders nothing.
// RACE any global:value a b
// MAY-MISS shared: each place runs once
#include "annotations.h"
#include "race.h"

int value;
int flag;

static void* First(void* argument) {
  value = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  CALL_IF_THERE("__tsan_acquire", (void*)&flag);
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
