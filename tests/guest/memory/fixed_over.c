#include "fault.h"

int main(void) {
  CatchFaults();
  char* p = Map(4 * kPage, PROT_READ | PROT_WRITE);
  memset(p, 'a', 4 * kPage);
  char* q = mmap(p + kPage, 2 * kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  Fact(q == p + kPage, "MAP_FIXED over a mapping");
  Fact(q[0] == 0 && q[2 * kPage - 1] == 0, "the new pages are zero");
  Fact(p[kPage - 1] == 'a' && p[3 * kPage] == 'a', "the neighbours keep their contents");
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    q[0] = (char)i;
    q = mmap(q, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    good += *(volatile char*)q == 0;
  }
  Fact(good == 100, "replaced 100 times, zero every time");
  mmap(q, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  Fact(FAULTS(*(volatile char*)q = 1) && SegvWas(SEGV_ACCERR, q), "replaced by a read-only page");
  const int fd = OpenTemporary();
  if (write(fd, "file", 4) != 4) return 1;
  mmap(q, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  Fact(memcmp(q, "file", 4) == 0, "replaced by a file");
  return Done();
}
