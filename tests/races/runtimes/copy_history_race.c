// client.h: an object is copied between two accesses that race; byte for byte.
// RACE write-write global:to+5 a b
// TAGS fast
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

volatile char from[16], to[16];

static void* First(void* argument) {
  from[7] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  to[4] = 2;
  to[5] = 2;  // [b]
  to[6] = 2;
  from[3] = 2;
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  trapline_copy_history(from + 3, to + 1, 9);
  const pthread_t other = RunToEnd(Second, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
