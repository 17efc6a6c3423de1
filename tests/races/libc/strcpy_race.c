// strcpy writes up to and with the final zero.
// RACE write-write global:target a b
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char source[32] = "twenty-one characters";
char target[32];

static void* First(void* argument) {
  strcpy(target, source);  // [a]
  return argument;
}

static void* Second(void* argument) {
  target[21] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
