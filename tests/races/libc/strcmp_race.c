// strcmp reads both texts.
// RACE read-write global:right a b
// MAY-MISS shared: each place runs once
#include <string.h>

#include "race.h"

char left[32] = "the same";
char right[32] = "the same";

static void* First(void* argument) {
  Use(strcmp((char*)Opaque((size_t)left), right));  // [a]
  return argument;
}

static void* Second(void* argument) {
  right[3] = ' ';  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
