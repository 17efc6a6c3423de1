// ThreadSanitizer's fibers: a switch orders, unless it says otherwise.
// CLEAN
#include "tsan_fibers.h"

int value;

static void First(void) {
  value = 1;
  FromFirstToSecond();
}

static void Second(void) {
  value = 2;
  FromSecondToMain();
}

int main(void) { return RunFibers(First, Second, 0); }
