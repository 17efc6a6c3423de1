// The taker's index is a plain volatile: the giver overwrites slots on its word.
// RACE read-write global:head a b
// ALSO any c d
// MAY-MISS shared: each place runs once in a thread
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: that index is reported besides
#include <stdatomic.h>

#include "race.h"

enum { kSlots = 2, kItems = 4 };
int slots[kSlots];
volatile unsigned head;
static atomic_uint tail;

static void* Gives(void* argument) {
  for (unsigned i = 0; i < kItems; i++) {
    while (i - head == kSlots) usleep(100);  // [a]
    slots[i % kSlots] = (int)i;              // [c]
    atomic_store_explicit(&tail, i + 1, memory_order_release);
  }
  return argument;
}

static void* Takes(void* argument) {
  for (unsigned i = 0; i < kItems; i++) {
    while (atomic_load_explicit(&tail, memory_order_acquire) == i) usleep(100);
    Use(slots[i % kSlots]);  // [d]
    head = i + 1;            // [b]
  }
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
