// Two atomic stores in two branches, of which clang makes one: debug info gives it line 0.
// CLEAN
// BUILD O0 O2 clang-O2
// TAGS fast
#include <stdatomic.h>

#include "race.h"

struct Slot {
  atomic_int state;
  int value;
};

static struct Slot* slot;  // on the heap: no variable's type tells

__attribute__((noinline)) static void Publish(struct Slot* to, long last) {
  to->value = 1;
  if (last)
    atomic_store_explicit(&to->state, 2, memory_order_release);
  else
    atomic_store_explicit(&to->state, 1, memory_order_release);
}

static void* Sender(void* argument) {
  Publish(slot, (long)argument);
  return argument;
}

static void* Receiver(void* argument) {
  while (!atomic_load_explicit(&slot->state, memory_order_acquire)) usleep(1000);
  slot->value++;
  return argument;
}

int main(void) {
  slot = calloc(1, sizeof *slot);
  Check(slot != NULL);
  RunTwo(Sender, Receiver);
  return slot->value == 2 ? Done() : 1;
}
