// Both readers race with the writer; of two races on one byte the second may go unreported.
// ONE-OF read-write global:value a w
// ONE-OF read-write global:value b w
// MAY-MISS shared: each place runs once
#include "race.h"

int value;

static void* First(void* argument) {
  Use(value);  // [a]
  return argument;
}

static void* Second(void* argument) {
  Use(value);  // [b]
  return argument;
}

int main(void) {
  const pthread_t first = Start(First, NULL);
  const pthread_t second = Start(Second, NULL);
  value = 1;  // [w]
  Join(first);
  Join(second);
  return Done();
}
