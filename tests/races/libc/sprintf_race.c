// snprintf writes its target in the name of its caller.
// RACE write-write global:text a b
// MAY-MISS shared: each place runs once
#include "race.h"

char text[32];

static void* First(void* argument) {
  snprintf(text, sizeof(text), "%d", (int)Opaque(12345));  // [a]
  return argument;
}

static void* Second(void* argument) {
  text[3] = 'x';  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
