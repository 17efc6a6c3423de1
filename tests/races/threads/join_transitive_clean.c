// A thread that a thread joined is ordered before whoever joins the latter.
// CLEAN
#include "race.h"

int value;

static void* Inner(void* argument) {
  value = 1;
  return argument;
}

static void* Outer(void* argument) {
  Join(Start(Inner, NULL));
  return argument;
}

int main(void) {
  Join(Start(Outer, NULL));
  value++;
  return value == 2 ? Done() : 1;
}
