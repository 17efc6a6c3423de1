// memcpy reads its source in the name of its caller.
// RACE read-write global:source a b
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
  source[0] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
