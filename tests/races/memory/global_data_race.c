// An element of an initialised array: the report names symbol and offset.
// RACE write-write global:table+8 a b
// MAY-MISS shared: each place runs once
// BUILD O0 O2 static fixed
#include "race.h"

int table[4] = {1, 2, 3, 4};

static void* First(void* argument) {
  table[2] = 5;  // [a]
  return argument;
}

static void* Second(void* argument) {
  table[2] = 6;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
