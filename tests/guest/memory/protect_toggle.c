#include "fault.h"

int main(void) {
  CatchFaults();
  volatile char* p = Map(3 * kPage, PROT_READ | PROT_WRITE);
  volatile char* middle = p + kPage;
  *middle = 1;
  int good = 0;
  for (int i = 0; i < 200; ++i) {
    mprotect((void*)middle, kPage, PROT_READ);
    if (FAULTS(*middle = 2) && SegvWas(SEGV_ACCERR, middle) && *middle == 1 + i % 2) ++good;
    mprotect((void*)middle, kPage, PROT_NONE);
    if (FAULTS((void)*middle) && SegvWas(SEGV_ACCERR, middle)) ++good;
    mprotect((void*)middle, kPage, PROT_READ | PROT_WRITE);
    if (!FAULTS(*middle = (char)(1 + (i + 1) % 2))) ++good;
    if (!FAULTS(p[0] = p[2 * kPage] = 3)) ++good;
  }
  Fact(good == 800, "200 rounds of read-only, none, read-write");
  Fact(mprotect((void*)(p + 1), kPage, PROT_READ) == -1 && errno == EINVAL,
       "misaligned mprotect is EINVAL");
  munmap((void*)middle, kPage);
  Fact(mprotect((void*)p, 3 * kPage, PROT_READ) == -1 && errno == ENOMEM,
       "across a hole it is ENOMEM");
  Fact(FAULTS(p[0] = 1) && SegvWas(SEGV_ACCERR, p), "but the part before the hole was changed");
  Fact(!FAULTS(p[2 * kPage] = 1), "and the part behind was not");
  return Done();
}
