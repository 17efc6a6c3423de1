// client.h: two moves to overlapping places, down and up again, in one call: histories go along.
// RACE write-write global:heap+26 a b
// TSAN-DIFFERS it does not know client.h
// MAY-MISS shared: each place runs once
#include "fibers.h"

char heap[64];

static void* First(void* argument) {
  heap[20] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  for (int i = 0; i < 64; i++) {
    if (i != 26) heap[i] = 2;
  }
  heap[26] = 2;  // [b]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  const struct trapline_history_move moves[] = {{heap + 16, heap + 13, 16},
                                                {heap + 13, heap + 22, 16}};
  trapline_copy_histories(moves, 2);
  trapline_clear_history(heap, 22);
  const pthread_t other = RunToEnd(Second, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
