// Reads between the ignore annotations do not count.
// CLEAN
#include "annotations.h"
#include "race.h"

int value;

static void* First(void* argument) {
  ANNOTATE_IGNORE_READS_BEGIN();
  Use(value);
  ANNOTATE_IGNORE_READS_END();
  return argument;
}

static void* Second(void* argument) {
  value = 1;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
