// A ticket lock, and a write after it was given back.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the lock is reported besides
#include "ticket.h"

int value;

static void* Works(void* argument) {
  Lock();
  Unlock();
  value = 1;  // [a]
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return Done();
}
