// rep movsq reads its source.
// RACE read-write global:source a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long source[600];
long target[600];

static void* First(void* argument) {
  long* from = source;
  long* to = target;
  size_t count = 600;
  __asm__ volatile("rep movsq" : "+S"(from), "+D"(to), "+c"(count) : : "memory");  // [a]
  return argument;
}

static void* Second(void* argument) {
  source[599] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
