// A spin lock that looks before it tries.
// CLEAN
#include <stdatomic.h>

#include "race.h"

static int value;
static atomic_int taken;

static void Lock(void) {
  for (;;) {
    while (atomic_load_explicit(&taken, memory_order_relaxed)) usleep(100);
    if (!atomic_exchange_explicit(&taken, 1, memory_order_acquire)) return;
  }
}

static void Unlock(void) { atomic_store_explicit(&taken, 0, memory_order_release); }

static void* Works(void* argument) {
  for (int i = 0; i < 5; i++) {
    Lock();
    value++;
    Unlock();
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 10 ? Done() : 1;
}
