// Two threads are the first to call a function: lazy binding writes to the program's table.
// CLEAN
// BUILD O0
// LINK -Wl,-z,lazy -lm
#include <math.h>

#include "race.h"

volatile double input = 0.5;

static void* Caller(void* argument) {
  Use((long)cos(input));
  Use((long)atan(input));
  return argument;
}

int main(void) {
  RunTwo(Caller, Caller);
  return Done();
}
