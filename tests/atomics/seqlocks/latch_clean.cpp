// A latch after Linux's seqcount_latch: two copies, the sequence says which is stable.
// CLEAN
#include "latch.h"

int main() {
  return RunLatch(Write, [] { Use(Read()); });
}
