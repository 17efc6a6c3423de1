// Prefetches, lea and long nops name memory and access none.
// CLEAN
#include "race.h"

long word;

static void* First(void* argument) {
  __builtin_prefetch(&word);
  __builtin_prefetch(&word, 1);
  __asm__ volatile("prefetchnta %0; nopl %0" : : "m"(word));
  long address;
  __asm__ volatile("lea %1, %0" : "=r"(address) : "m"(word));
  Use(address);
  return argument;
}

static void* Second(void* argument) {
  word = 2;
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
