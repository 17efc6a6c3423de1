// Ignored reads do not hide writes, nor what comes after the end.
// RACE write-write global:value a b
// RACE read-write global:other c d
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it ignores writes as well
#include "annotations.h"
#include "race.h"

int value;
int other;

static void* First(void* argument) {
  ANNOTATE_IGNORE_READS_BEGIN();
  value = 1;  // [a]
  ANNOTATE_IGNORE_READS_END();
  Use(other);  // [c]
  return argument;
}

static void* Second(void* argument) {
  value = 2;  // [b]
  other = 2;  // [d]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
