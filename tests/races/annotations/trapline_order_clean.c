// client.h: an order that the tool cannot see.
// CLEAN
// BUILD O0 O2 static
// TSAN-DIFFERS it does not know client.h
#include "race.h"
#include "trapline/client.h"

int value;
volatile int flag;

static void* First(void* argument) {
  value = 1;
  trapline_happens_before(&value);
  flag = 1;
  return argument;
}

static void* Second(void* argument) {
  while (flag == 0) usleep(1000);
  trapline_happens_after(&value);
  value++;
  return argument;
}

int main(void) {
  trapline_benign_race(&flag, sizeof(flag));
  RunTwo(First, Second);
  return Done();
}
