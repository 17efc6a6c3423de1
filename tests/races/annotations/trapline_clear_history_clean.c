// client.h: memory declared fresh.
// CLEAN
// TSAN-DIFFERS it does not know client.h
#include "race.h"
#include "trapline/client.h"

int value;
volatile int flag;

static void* First(void* argument) {
  value = 1;
  trapline_clear_history(&value, sizeof(value));
  flag = 1;
  return argument;
}

static void* Second(void* argument) {
  while (flag == 0) usleep(1000);
  value = 2;
  return argument;
}

int main(void) {
  trapline_untrack(&flag, sizeof(flag));
  RunTwo(First, Second);
  return Done();
}
