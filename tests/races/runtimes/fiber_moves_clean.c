// A fiber that goes on on another carrier: what it does is one thread's work.
// CLEAN
// TAGS fast
// TSAN-DIFFERS it does not know client.h
#include "fibers.h"

int value;
static Fiber fiber;

static void Work(void) {
  value = 1;
  Yield(&fiber, 1);
  value++;
  Yield(&fiber, 1);
}

static void* Carrier(void* argument) {
  Resume(&fiber, 1);
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  Prepare(&fiber, Work);
  trapline_fiber_create(&fiber);
  const pthread_t one = RunToEnd(Carrier, NULL);
  const pthread_t other = RunToEnd(Carrier, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
