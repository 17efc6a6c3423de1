#include "fault.h"

int main(void) {
  CatchFaults();
  char* p = Map(64 * kPage, PROT_READ | PROT_WRITE);
  for (int i = 0; i < 64; ++i) p[i * kPage] = (char)i;
  for (int i = 1; i < 64; i += 2) munmap(p + i * kPage, kPage);
  int kept = 0;
  int gone = 0;
  for (int i = 0; i < 64; ++i) {
    volatile char* page = p + i * kPage;
    if (i % 2 == 0) {
      kept += *page == i;
    } else {
      gone += FAULTS((void)*page) && SegvWas(SEGV_MAPERR, page);
    }
  }
  Fact(kept == 32, "every other page kept");
  Fact(gone == 32, "the others are gone");
  char* q = mmap(p + 5 * kPage, kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  Fact(q[0] == 0, "a hole filled again is zero");
  Fact(munmap(p, 64 * kPage) == 0, "one munmap for all that is left");
  return Done();
}
