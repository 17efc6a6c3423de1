// The creator uses the result before it joins.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// BUILD O0 O2 static fixed
#include "race.h"

int value;

static void* Writer(void* argument) {
  value = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t writer = Start(Writer, NULL);
  value = 2;  // [b]
  Join(writer);
  return Done();
}
