// __tsan_release and __tsan_acquire order.
// CLEAN
#include "annotations.h"
#include "race.h"

int value;
volatile int flag;

static void* First(void* argument) {
  value = 1;
  CALL_IF_THERE("__tsan_release", (void*)&flag);
  flag = 1;
  return argument;
}

static void* Second(void* argument) {
  while (flag == 0) usleep(1000);
  CALL_IF_THERE("__tsan_acquire", (void*)&flag);
  value++;
  return argument;
}

int main(void) {
  ANNOTATE_BENIGN_RACE_SIZED(&flag, sizeof(flag), "ordered by hand");
  RunTwo(First, Second);
  return Done();
}
