// Operands with the gs prefix in a program that has never set its base: as without the prefix,
// also in code that runs long enough to count as hot, on pages that come and go.
#include "guest.h"

static void* Wait(void* unused) {
  for (;;) pause();
  return unused;
}

__attribute__((noinline)) static int LoadByGs(const int* p) {
  int value;
  __asm__ volatile("mov %%gs:(%1), %0" : "=r"(value) : "r"(p) : "memory");
  return value;
}
__attribute__((noinline)) static void StoreByGs(int* p, int value) {
  __asm__ volatile("mov %1, %%gs:(%0)" : : "r"(p), "r"(value) : "memory");
}

int main(void) {
  enum { kRounds = 200, kWords = 16384 };
  Start(Wait, NULL);
  int* const high = Map(kWords * sizeof(int), PROT_READ | PROT_WRITE);
  int* const low = mmap(NULL, kWords * sizeof(int), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  int* const pages[] = {high, low};
  long sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      int* const page = pages[i];
      mprotect(page + kWords / 2, kPage, PROT_READ | PROT_WRITE);
      for (int word = 0; word < kWords; ++word) ((volatile int*)page)[word] = word;
      StoreByGs(page + kWords / 2 + 1, round);
      sum += LoadByGs(page + kWords / 2) + LoadByGs(page + kWords / 2 + 1);
    }
  }
  Fact(sum == 2 * ((long)kRounds * kWords / 2 + kRounds * (kRounds - 1) / 2), "the sum");
  return Done();
}
