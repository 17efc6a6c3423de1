// client.h: an object moves while a thread holds the lock in it, and is unlocked where it is then.
// CLEAN
// TSAN-DIFFERS it does not know client.h
#include "fibers.h"

long heap[8];

static void* First(void* argument) {
  trapline_lock_acquired(&heap[0]);
  heap[1] = 1;
  trapline_copy_history(&heap[0], &heap[4], 16);
  heap[5] = 2;
  trapline_lock_releasing(&heap[4]);
  return argument;
}

static void* Second(void* argument) {
  trapline_lock_acquired(&heap[4]);
  heap[5]++;
  trapline_lock_releasing(&heap[4]);
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const pthread_t one = RunToEnd(First, NULL);
  const pthread_t other = RunToEnd(Second, NULL);
  Join(one);
  Join(other);
  EndIdle(idle);
  return Done();
}
