// A queue lock, and a write after it was given back.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the nodes are reported besides
#include "clh.h"

int value;

static void* Works(void* argument) {
  Lock();
  Unlock();
  value = 1;  // [a]
  return argument;
}

int main() {
  RunTwo(Works, Works);
  return Done();
}
