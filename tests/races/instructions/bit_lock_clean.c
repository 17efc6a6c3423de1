// A lock that is one bit of a word, taken by `lock bts` with the bit's number in a register, as
// compilers make of fetch_or(1 << bit).
// CLEAN
// BUILD O0 O2 clang-O2 static
#include <sched.h>

#include "race.h"

unsigned long words[64];
long value;
pthread_barrier_t start;

static int TryLock(unsigned long* from, long bit) {
  char taken;
  __asm__ volatile("lock btsq %2, %1\n\tsetc %0"
                   : "=q"(taken), "+m"(*from)
                   : "r"(bit)
                   : "cc", "memory");
  return !taken;
}

static void Unlock(unsigned long* from, long bit) {
  __asm__ volatile("lock btrq %1, %0" : "+m"(*from) : "r"(bit) : "cc", "memory");
}

static void* Work(void* argument) {
  const long bit = (long)Opaque(1000);
  pthread_barrier_wait(&start);
  for (int i = 0; i < 50; ++i) {
    while (!TryLock(words, bit)) sched_yield();
    ++value;
    Unlock(words, bit);
  }
  return argument;
}

int main(void) {
  Check(pthread_barrier_init(&start, NULL, 2) == 0);
  RunTwo(Work, Work);
  return Done();
}
