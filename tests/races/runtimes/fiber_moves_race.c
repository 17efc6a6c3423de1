// One carrier runs two fibers; each goes on elsewhere. What they do on the same carrier races, and
// what one of them does on two carriers does not.
// RACE write-write global:value a b
// TAGS fast
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

int value, own;
static Fiber first, second;

static void First(void) {
  own = 1;
  value = 1;  // [a]
  Yield(&first, 1);
  own++;
  Yield(&first, 1);
}

static void Second(void) {
  value = 2;  // [b]
  Yield(&second, 1);
}

static void* Both(void* argument) {
  Resume(&first, 1);
  Resume(&second, 1);
  return argument;
}

static void* OneMore(void* argument) {
  Resume(&first, 1);
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  Prepare(&first, First);
  Prepare(&second, Second);
  trapline_fiber_create(&first);
  trapline_fiber_create(&second);
  const pthread_t one = RunToEnd(Both, NULL);
  const pthread_t other = RunToEnd(OneMore, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
