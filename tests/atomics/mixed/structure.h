// An _Atomic structure of WORDS times 8 bytes hands a buffer over.
#include <stdatomic.h>

#include "race.h"

typedef struct {
  long* data;
  unsigned long version[WORDS - 1];
} Structure;

static _Atomic(Structure) current;
static long buffer[4];

static void Publish(void) {
  Structure next = {buffer, {1}};
  atomic_store(&current, next);
}

// The buffer that was published.
static long* Await(void) {
  Structure seen;
  do {
    seen = atomic_load(&current);
  } while (seen.version[0] == 0);
  return seen.data;
}
