// A pointer to a thread's own variable is given to another thread.
// RACE write-write tls:mine a b
// BUILD O0 O2 stripped
// MAY-MISS shared: each place runs once
#include "race.h"

__thread int mine;

static void* Other(void* argument) {
  *(int*)argument = 1;  // [a]
  return NULL;
}

int main(void) {
  const pthread_t other = Start(Other, &mine);
  mine = 2;  // [b]
  Join(other);
  return Done();
}
