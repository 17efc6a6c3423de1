#include "fault.h"

int main(void) {
  CatchFaults();
  char* area = Map(2048 * kPage, PROT_NONE);
  munmap(area, 2048 * kPage);
  char* top = area + 2046 * kPage;  // with a free page above
  char* p = mmap(top, kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
  Fact(p == top, "a page that grows down");
  for (int i = 0; i < 100; ++i) *(volatile char*)(top - i * kPage) = (char)i;
  bool good = true;
  for (int i = 0; i < 100; ++i) good = good && *(volatile char*)(top - i * kPage) == (char)i;
  Fact(good, "grown by 99 pages, one at a time");
  Fact(!FAULTS(*(volatile char*)(top - 150 * kPage) = 1), "grown by 50 pages at once");
  Fact(*(volatile char*)(top - 120 * kPage) == 0, "zero in between");
  Fact(FAULTS(*(volatile char*)(top + kPage)) && last_fault.code == SEGV_MAPERR,
       "it does not grow up");
  const struct rlimit small = {64 * kPage, RLIM_INFINITY};
  Fact(setrlimit(RLIMIT_STACK, &small) == 0, "a limit on stacks");
  Fact(FAULTS(*(volatile char*)(top - 200 * kPage) = 1), "it does not grow beyond");
  return Done();
}
