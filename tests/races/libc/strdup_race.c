// strdup reads its source; the copy belongs to the caller.
// RACE read-write global:text a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS the call is expanded inline, or not intercepted
#include <string.h>

#include "race.h"

char text[32] = "a text";

static void* First(void* argument) {
  char* copy = strdup(text);  // [a]
  Use(copy[0]);
  free(copy);
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
