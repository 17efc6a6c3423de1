// strlen reads the text in the name of its caller.
// RACE read-write global:text a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS the call is expanded inline, or not intercepted
#include <string.h>

#include "race.h"

char text[32] = "a text";

static void* First(void* argument) {
  Use((long)strlen((char*)Opaque((size_t)text)));  // [a]
  return argument;
}

static void* Second(void* argument) {
  text[2] = 'T';  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
