// What a thread finds written before its creation is ordered before it.
// CLEAN
#include "race.h"

int value;

static void* Reader(void* argument) {
  Use(value);
  return argument;
}

int main(void) {
  value = 1;
  const pthread_t first = Start(Reader, NULL);
  const pthread_t second = Start(Reader, NULL);
  Join(first);
  Join(second);
  return Done();
}
