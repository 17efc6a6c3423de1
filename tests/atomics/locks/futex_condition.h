// A mutex and a condition variable made of futexes, by which a thread gives another three turns.
#include <limits.h>

#include "futex.h"

static atomic_int lock, sequence;
static int ready;

static void Lock(void) {
  int free = 0;
  if (atomic_compare_exchange_strong_explicit(&lock, &free, 1, memory_order_acquire,
                                              memory_order_relaxed))
    return;
  while (atomic_exchange_explicit(&lock, 2, memory_order_acquire) != 0) Futex(&lock, FUTEX_WAIT, 2);
}

static void Unlock(void) {
  if (atomic_exchange_explicit(&lock, 0, memory_order_release) == 2) Futex(&lock, FUTEX_WAKE, 1);
}

static void Wait(void) {
  const int seen = atomic_load_explicit(&sequence, memory_order_relaxed);
  Unlock();
  Futex(&sequence, FUTEX_WAIT, seen);
  Lock();
}

static void WakeAll(void) {
  atomic_fetch_add_explicit(&sequence, 1, memory_order_relaxed);
  Futex(&sequence, FUTEX_WAKE, INT_MAX);
}

// The program's: what the giver does under the lock, and what the taker does, who is to unlock it.
static void Give(void);
static void TakeAndUnlock(void);

static void* Taker(void* argument) {
  for (int round = 0; round < 3; round++) {
    Lock();
    while (!ready) Wait();
    ready = 0;
    TakeAndUnlock();
  }
  return argument;
}

static void* Giver(void* argument) {
  for (int round = 0; round < 3; round++) {
    Lock();
    ready = 1;
    Give();
    WakeAll();
    for (;;) {
      const int left = ready;
      Unlock();
      if (!left) break;
      usleep(100);
      Lock();
    }
  }
  Lock();
  Give();
  Unlock();
  return argument;
}

static int RunTurns(void) {
  RunTwo(Taker, Giver);
  return Done();
}
