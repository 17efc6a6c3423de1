// A lock that is one bit of a word, taken by `lock bts` with the bit's number in a register, as
// compilers make of fetch_or(1 << bit).
// CLEAN
// BUILD O0 O2 clang-O2 static
#include "race.h"

unsigned words[64];
long value;

static int TryLock(unsigned* from, long bit) {
  char taken;
  __asm__ volatile("lock btsq %2, %1\n\tsetc %0"
                   : "=q"(taken), "+m"(*from)
                   : "r"(bit)
                   : "cc", "memory");
  return !taken;
}

static void Unlock(unsigned* from, long bit) {
  __asm__ volatile("lock btrq %1, %0" : "+m"(*from) : "r"(bit) : "cc", "memory");
}

static void* Work(void* argument) {
  for (int i = 0; i < 20; ++i) {
    const long bit = (long)Opaque(1000);
    while (!TryLock(words, bit)) usleep(10);
    ++value;
    Unlock(words, bit);
  }
  return argument;
}

int main(void) {
  RunTwo(Work, Work);
  return Done();
}
