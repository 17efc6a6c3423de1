// A mutex and a condition variable made of futexes.
// CLEAN
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

static atomic_int lock, sequence;
static int ready, value;

static void Futex(atomic_int* word, int what, int number) {
  syscall(SYS_futex, word, what, number, NULL, NULL, 0);
}

static void Lock(void) {
  int free = 0;
  if (atomic_compare_exchange_strong_explicit(&lock, &free, 1, memory_order_acquire,
                                              memory_order_relaxed))
    return;
  while (atomic_exchange_explicit(&lock, 2, memory_order_acquire) != 0)
    Futex(&lock, FUTEX_WAIT_PRIVATE, 2);
}

static void Unlock(void) {
  if (atomic_exchange_explicit(&lock, 0, memory_order_release) == 2)
    Futex(&lock, FUTEX_WAKE_PRIVATE, 1);
}

static void Wait(void) {
  const int seen = atomic_load_explicit(&sequence, memory_order_relaxed);
  Unlock();
  Futex(&sequence, FUTEX_WAIT_PRIVATE, seen);
  Lock();
}

static void* Taker(void* argument) {
  for (int round = 0; round < 3; round++) {
    Lock();
    while (!ready) Wait();
    ready = 0;
    value++;
    Unlock();
  }
  return argument;
}

static void* Giver(void* argument) {
  for (int round = 0; round < 3; round++) {
    Lock();
    ready = 1;
    value += 2;
    atomic_fetch_add_explicit(&sequence, 1, memory_order_relaxed);
    Futex(&sequence, FUTEX_WAKE_PRIVATE, INT_MAX);
    for (;;) {
      const int left = ready;
      Unlock();
      if (!left) break;
      usleep(100);
      Lock();
    }
  }
  Lock();
  value++;
  Unlock();
  return argument;
}

int main(void) {
  RunTwo(Taker, Giver);
  return Done();
}
