// Writes between the ignore annotations do not count.
// CLEAN
#include "annotations.h"
#include "race.h"

int value;

static void* First(void* argument) {
  ANNOTATE_IGNORE_WRITES_BEGIN();
  value = 1;
  ANNOTATE_IGNORE_WRITES_END();
  return argument;
}

static void* Second(void* argument) {
  Use(value);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
