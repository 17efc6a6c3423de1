// snprintf reads the text of a %s in the name of its caller.
// RACE read-write global:text a b
// MAY-MISS shared: each place runs once
#include "race.h"

char text[32] = "a text";

static void* First(void* argument) {
  char line[64];
  snprintf(line, sizeof(line), "<%s>", text);  // [a]
  Use(line[0]);
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
