// A ring for one producer and one consumer, whose indices are stored and loaded by macros alone: no
// line names an atomic operation, and no instruction is one.
// CLEAN
// BUILD O0 O2 clang-O0 clang-O2
// TAGS fast
#include "macros.h"
#include "race.h"

enum { kRounds = 3000, kSlots = 8 };

struct Ring {
  unsigned long head, tail;
  long slots[kSlots];
};

static struct Ring* ring;
static long sum;

static void* Produce(void* argument) {
  for (unsigned long i = 0; i < kRounds; ++i) {
    while (i - LOAD_ACQUIRE(&ring->tail) == kSlots) usleep(10);
    ring->slots[i % kSlots] = (long)i;
    STORE_RELEASE(&ring->head, i + 1);
  }
  return argument;
}

static void* Consume(void* argument) {
  for (unsigned long i = 0; i < kRounds; ++i) {
    while (LOAD_ACQUIRE(&ring->head) == i) usleep(10);
    sum += ring->slots[i % kSlots];
    STORE_RELEASE(&ring->tail, i + 1);
  }
  return argument;
}

int main(void) {
  ring = calloc(1, sizeof *ring);
  RunTwo(Produce, Consume);
  return Done();
}
