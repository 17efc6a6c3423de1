// Two fibers on the program's only thread: to the language they are two threads.
// RACE write-write global:value a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

int value;
static Fiber first, second;

static void First(void) {
  value = 1;  // [a]
  Yield(&first, 1);
}

static void Second(void) {
  value = 2;  // [b]
  Yield(&second, 1);
}

int main(void) {
  Prepare(&first, First);
  Prepare(&second, Second);
  trapline_fiber_create(&first);
  trapline_fiber_create(&second);
  Resume(&first, 1);
  Resume(&second, 1);
  trapline_fiber_destroy(&first);
  trapline_fiber_destroy(&second);
  return Done();
}
