// Valgrind's client requests tell of an order that the tool cannot see; no tool answers.
// CLEAN
// TSAN-DIFFERS it knows nothing of valgrind's requests
// BUILD O0 O2 static stripped
#include "race.h"
#include "valgrind_requests.h"

int value;
volatile int flag;

static void* First(void* argument) {
  value = 1;
  Request(kHappensBefore, &flag, 0);
  flag = 1;
  return argument;
}

static void* Second(void* argument) {
  while (flag == 0) usleep(1000);
  Request(kHappensAfter, &flag, 0);
  value++;
  return argument;
}

int main(void) {
  Check(Request(kRunningOnValgrind, NULL, 0) == 0);
  Request(kIgnoreRange, &flag, sizeof flag);
  RunTwo(First, Second);
  return Done();
}
