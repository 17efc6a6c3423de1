// client.h: a thread that has used the new place before the move uses it afterwards, too, and has
// not synchronised in between: its second access counts.
// RACE write-write global:to a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

long from, to;
static volatile int step;

static void* First(void* argument) {
  for (int i = 0; i < 2; i++) {
    to = i;  // [a]
    if (i == 1) break;
    step = 1;
    while (step != 2) {
    }
  }
  return argument;
}

static void* Mover(void* argument) {
  while (step != 1) usleep(1000);
  trapline_copy_history(&from, &to, sizeof(to));
  step = 2;
  return argument;
}

static void* Second(void* argument) {
  to = 2;  // [b]
  return argument;
}

int main(void) {
  trapline_untrack(&step, sizeof(step));
  const pthread_t idle = StartIdle();
  const pthread_t mover = Start(Mover, NULL);
  const pthread_t one = RunToEnd(First, NULL);
  const pthread_t other = RunToEnd(Second, NULL);
  Join(mover);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
