// A mutex and a condition variable made of futexes, and a count after the mutex was given back.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include "futex_condition.h"

int value;

static void Give(void) {
  value += 2;  // [b]
}

static void TakeAndUnlock(void) {
  Unlock();
  value++;  // [a]
}

int main(void) { return RunTurns(); }
