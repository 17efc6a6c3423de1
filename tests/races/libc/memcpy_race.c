// memcpy writes its target in the name of its caller.
// RACE write-write global:target a b
// TAGS fast
// BUILD O0 O2 static
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char source[300];
char target[300];

static void* First(void* argument) {
  memcpy(target, source, Opaque(300));  // [a]
  return argument;
}

static void* Second(void* argument) {
  target[299] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
