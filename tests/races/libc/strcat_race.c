// strcat reads the text it extends.
// RACE any global:text a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS the call is expanded inline, or not intercepted
#include <string.h>

#include "race.h"

char text[32] = "one";

static void* First(void* argument) {
  strcat(text, (char*)Opaque((size_t) " two"));  // [a]
  return argument;
}

static void* Second(void* argument) {
  text[1] = 'N';  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
