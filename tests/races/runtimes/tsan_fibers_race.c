// ThreadSanitizer's fibers, switched without order: each is a thread of its own.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "tsan_fibers.h"

int value;

static void First(void) {
  value = 1;  // [a]
  FromFirstToSecond();
}

static void Second(void) {
  value = 2;  // [b]
  FromSecondToMain();
}

int main(void) { return RunFibers(First, Second, 1); }
