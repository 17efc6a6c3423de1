// A pthread_join that is refused orders nothing: here of a thread with itself.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <errno.h>

#include "race.h"

int value;

static void* Writer(void* argument) {
  value = 1;  // [a]
  return argument;
}

int main(void) {
  const pthread_t writer = Start(Writer, NULL);
  Check(pthread_join(pthread_self(), NULL) == EDEADLK);
  value = 2;  // [b]
  Join(writer);
  return Done();
}
