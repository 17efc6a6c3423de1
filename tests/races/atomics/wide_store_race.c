// A store that is wider than the atomic variable under it is of the whole structure.
// RACE atomic-plain global:slot a b
// BUILD O2 clang-O2 gcc-O2-nodebug
#include <stdatomic.h>

#include "run_to_end.h"

struct Slot {
  _Alignas(8) atomic_int users;
  int kind;
} slot;

static void* Recycles(void* argument) {
  slot = (struct Slot){1, 2};  // [a]
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  const pthread_t recycles = RunToEnd(Recycles, NULL);
  atomic_fetch_add_explicit(&slot.users, 1, memory_order_relaxed);  // [b]
  EndIdle(idle);
  Join(recycles);
  return slot.kind == 2 ? 0 : 1;
}
