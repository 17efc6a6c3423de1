// A lock in one bit of a word of flags, as kernels have it.
// ONE-OF any global:value a b
// ONE-OF any global:value b b
// MAY-MISS shared: who had the page first did so alone
#include "race.h"

static unsigned long word;
int value;

static void Lock(void) {
  while (__atomic_fetch_or(&word, 1ul << 5, __ATOMIC_ACQUIRE) & (1ul << 5)) {
    while (__atomic_load_n(&word, __ATOMIC_RELAXED) & (1ul << 5)) usleep(10);
  }
}

static void Unlock(void) { __atomic_and_fetch(&word, ~(1ul << 5), __ATOMIC_RELEASE); }

static void* Worker(void* argument) {
  for (int i = 0; i < 10; i++) {
    Lock();
    value++;  // [a]
    Unlock();
    __atomic_fetch_or(&word, 2, __ATOMIC_RELAXED);
  }
  value++;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
