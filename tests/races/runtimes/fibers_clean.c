// Two fibers on one thread, the second after the first by a key, and their maker after both.
// CLEAN
#include "fibers.h"

int value;
static Fiber first, second;

static void First(void) {
  value = 1;
  trapline_happens_before(&first);
  Yield(&first, 1);
}

static void Second(void) {
  trapline_happens_after(&first);
  value += 2;
  trapline_happens_before(&second);
  Yield(&second, 1);
}

int main(void) {
  Prepare(&first, First);
  Prepare(&second, Second);
  value = 7;
  trapline_fiber_create(&first);
  trapline_fiber_create(&second);
  Resume(&first, 1);
  Resume(&second, 1);
  trapline_happens_after(&second);
  trapline_fiber_destroy(&first);
  trapline_fiber_destroy(&second);
  Check(value == 3);
  return Done();
}
