// A ring for one giver and one taker.
// CLEAN
// TAGS fast
#include <stdatomic.h>

#include "race.h"

enum { kSlots = 4, kItems = 8 };
static int slots[kSlots];
static atomic_uint head, tail;

static void* Gives(void* argument) {
  for (unsigned i = 0; i < kItems; i++) {
    while (i - atomic_load_explicit(&head, memory_order_acquire) == kSlots) usleep(100);
    slots[i % kSlots] = (int)i;
    atomic_store_explicit(&tail, i + 1, memory_order_release);
  }
  return argument;
}

static void* Takes(void* argument) {
  for (unsigned i = 0; i < kItems; i++) {
    while (atomic_load_explicit(&tail, memory_order_acquire) == i) usleep(100);
    Check(slots[i % kSlots] == (int)i);
    atomic_store_explicit(&head, i + 1, memory_order_release);
  }
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
