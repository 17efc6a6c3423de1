// Annotations tell of an order that the tool cannot see.
// CLEAN
#include "annotations.h"
#include "race.h"

int value;
volatile int flag;

static void* First(void* argument) {
  value = 1;
  ANNOTATE_HAPPENS_BEFORE(&flag);
  flag = 1;
  return argument;
}

static void* Second(void* argument) {
  while (flag == 0) usleep(1000);
  ANNOTATE_HAPPENS_AFTER(&flag);
  value++;
  return argument;
}

int main(void) {
  ANNOTATE_BENIGN_RACE_SIZED(&flag, sizeof(flag), "the annotations order it");
  RunTwo(First, Second);
  return Done();
}
