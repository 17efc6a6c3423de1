// A mutex and a condition variable made of futexes.
// CLEAN
#include "futex_condition.h"

int value;

static void Give(void) { value += 2; }

static void TakeAndUnlock(void) {
  value++;
  Unlock();
}

int main(void) { return RunTurns(); }
