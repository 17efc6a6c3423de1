// The index goes on before the slot is filled.
// RACE read-write global:slots a b
// MAY-MISS shared: each place runs once in a thread
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the index is reported besides
#include <stdatomic.h>

#include "race.h"

enum { kSlots = 4 };
int slots[kSlots];
static atomic_uint tail;

static void* Gives(void* argument) {
  atomic_store_explicit(&tail, 1, memory_order_release);
  slots[0] = 1;  // [a]
  return argument;
}

static void* Takes(void* argument) {
  while (atomic_load_explicit(&tail, memory_order_acquire) == 0) usleep(100);
  Use(slots[0]);  // [b]
  return argument;
}

int main(void) {
  RunTwo(Gives, Takes);
  return Done();
}
