// Peterson's lock with volatile integers: its own words race.
// RACE any global:wants a b
// ALSO any t t
// ALSO any a c
// ALSO any t d
// ALSO any v v
// ALSO any b c
// ALSO any b e
// ALSO any a e
// MAY-MISS shared: each place runs once in a thread
// LIMIT O2-nodebug: a loop that does nothing else waits for it, as for an atomic one; the instructions are the same
#include "race.h"

volatile int wants[2], turn;
int value;

static void* Works(void* argument) {
  const long self = (long)argument;
  wants[self] = 1;         // [a]
  turn = (int)(1 - self);  // [t]
  __sync_synchronize();
  for (int i = 0; i < 100; i++) {
    if (!wants[1 - self]) break;  // [b]
    if (turn != 1 - self) break;  // [d]
  }
  value++;           // [v]
  wants[self] = 0;   // [e]
  Use(wants[self]);  // [c]
  return NULL;
}

int main(void) {
  const pthread_t first = Start(Works, (void*)0);
  const pthread_t second = Start(Works, (void*)1);
  Join(first);
  Join(second);
  return Done();
}
