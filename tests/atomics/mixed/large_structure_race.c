// A structure of 24 bytes that is _Atomic, behind the locks of libatomic.
// RACE any - a b
// FLAGS -Wno-unknown-warning-option -Wno-atomic-alignment
// LINK -latomic
// MAY-MISS shared: who had the page first did so alone
#include <stdatomic.h>

#include "race.h"

typedef struct {
  long* data;
  unsigned long version, more;
} Triple;

static _Atomic(Triple) current;
static long buffer[4];

static void* Giver(void* argument) {
  Triple next = {buffer, 1, 2};
  atomic_store(&current, next);
  buffer[1] = 5;  // [a]
  return argument;
}

static void* Taker(void* argument) {
  Triple seen;
  do {
    seen = atomic_load(&current);
  } while (seen.version == 0);
  seen.data[1] = 6;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Giver, Taker);
  return Done();
}
