// A race declared benign is not reported.
// CLEAN
#include "annotations.h"
#include "race.h"

int counter;

static void* First(void* argument) {
  counter++;
  return argument;
}

static void* Second(void* argument) {
  counter++;
  return argument;
}

int main(void) {
  ANNOTATE_BENIGN_RACE(&counter, "only a statistic");
  RunTwo(First, Second);
  return Done();
}
