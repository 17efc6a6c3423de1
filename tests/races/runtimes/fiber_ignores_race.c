// What a fiber ignores it ignores on the next carrier too, and the carrier it left does not.
// RACE write-write global:value a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

int scratch, value;
static Fiber fiber;

static void Work(void) {
  trapline_ignore_begin(TRAPLINE_READS_AND_WRITES);
  Yield(&fiber, 1);
  scratch = 1;
  trapline_ignore_end(TRAPLINE_READS_AND_WRITES);
  Yield(&fiber, 1);
}

static void* One(void* argument) {
  Resume(&fiber, 1);
  scratch = 2;
  value = 1;  // [a]
  return argument;
}

static void* Two(void* argument) {
  Resume(&fiber, 1);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  Prepare(&fiber, Work);
  trapline_fiber_create(&fiber);
  const pthread_t one = RunToEnd(One, NULL);
  const pthread_t other = RunToEnd(Two, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
