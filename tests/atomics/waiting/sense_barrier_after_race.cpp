// A barrier by sense reversal, and a write of both threads after it.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the barrier is reported besides
#include "sense_barrier.h"

int value;

static void Works() {
  bool own = false;
  Meet(own);
  value = 1;  // [a]
}

int main() {
  RunThreads(Works, Works);
  return Done();
}
