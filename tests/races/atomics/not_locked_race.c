// Read-modify-write instructions without the lock prefix are no atomics; xchg always is one.
// RACE any global:counters a a
// RACE any global:pair x x
// ALSO any a a
// MAY-MISS shared: the places run once in each thread
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long counters[2];
long pair[2];
long exchanged;

static void* Worker(void* argument) {
  __asm__ volatile("incq %0" : "+m"(counters[0]) : : "cc");                       // [a]
  __asm__ volatile("cmpxchgq %1, %0" : "+m"(pair[0]) : "r"(1L), "a"(0L) : "cc");  // [x]
  long one = 1;
  __asm__ volatile("xchgq %0, %1" : "+m"(exchanged), "+r"(one));
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
