// client.h: an object moves, and what was at its new place is forgotten, as what it leaves is.
// CLEAN
// TSAN-DIFFERS it does not know client.h
#include "fibers.h"

long from[4], to[4];

static void* First(void* argument) {
  from[1] = 1;
  trapline_happens_before(from);
  to[1] = 1;
  to[2] = 1;
  from[2] = 1;
  return argument;
}

static void* Second(void* argument) {
  trapline_happens_after(to);
  to[1] = 2;
  from[2] = 2;
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  trapline_copy_history(from, to, 16);
  trapline_clear_history(from, sizeof(from));
  const pthread_t other = RunToEnd(Second, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
