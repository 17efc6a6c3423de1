// A barrier by sense reversal, and a write of both threads after it.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
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
