// A free list of indices, with a tag against their coming back, in one word.
// CLEAN
// TAGS fast
#include <stdatomic.h>
#include <stdint.h>

#include "race.h"

enum { kNodes = 4, kNone = kNodes };
static unsigned next[kNodes];
static int value[kNodes];
static _Atomic uint64_t top = kNone;

static void Push(unsigned node) {
  uint64_t seen = atomic_load_explicit(&top, memory_order_relaxed);
  uint64_t wanted;
  do {
    __atomic_store_n(&next[node], (unsigned)seen, __ATOMIC_RELAXED);
    wanted = ((seen >> 32) + 1) << 32 | node;
  } while (!atomic_compare_exchange_weak_explicit(&top, &seen, wanted, memory_order_release,
                                                  memory_order_relaxed));
}

/* Everything at once: nobody else follows the links. */
static unsigned TakeAll(void) {
  uint64_t seen = atomic_load_explicit(&top, memory_order_relaxed);
  uint64_t wanted;
  do {
    wanted = ((seen >> 32) + 1) << 32 | kNone;
  } while (!atomic_compare_exchange_weak_explicit(&top, &seen, wanted, memory_order_acquire,
                                                  memory_order_relaxed));
  return (unsigned)seen;
}

static void* Gives(void* argument) {
  const unsigned from = (unsigned)(long)argument;
  for (unsigned i = from; i < from + 2; i++) {
    value[i] = 1;
    Push(i);
  }
  return NULL;
}

int main(void) {
  const pthread_t first = Start(Gives, (void*)0);
  const pthread_t second = Start(Gives, (void*)2);
  int sum = 0;
  while (sum < kNodes) {
    for (unsigned at = TakeAll(); at != kNone; at = next[at]) sum += value[at];
    usleep(100);
  }
  Join(first);
  Join(second);
  return Done();
}
