// A latch after Linux's seqcount_latch: two copies, the sequence says which is stable.
// CLEAN
// LIMIT nodebug: the copies are stored by plain movs, and nothing but debug info tells them from plain variables
#include "latch.h"

int main() {
  return RunLatch(Write, [] { Use(Read()); });
}
