#include "fault.h"

int main(void) {
  CatchFaults();
  char* from = Map(4 * kPage, PROT_READ | PROT_WRITE);
  char* to = Map(8 * kPage, PROT_READ | PROT_WRITE);
  for (int i = 0; i < 4; ++i) from[i * kPage] = (char)('a' + i);
  memset(to, 'z', 8 * kPage);
  char* p = mremap(from, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, to + 2 * kPage);
  Fact(p == to + 2 * kPage, "moved to the given place");
  Fact(p[0] == 'a' && p[kPage] == 'b' && p[2 * kPage] == 'c' && p[3 * kPage] == 'd' && p[1] == 0,
       "contents replaced what was there");
  Fact(to[0] == 'z' && to[2 * kPage - 1] == 'z' && to[6 * kPage] == 'z', "neighbours untouched");
  Fact(FAULTS(*(volatile char*)from) && SegvWas(SEGV_MAPERR, from), "the old place is gone");
  Fact(mremap(to, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, to + kPage) == MAP_FAILED &&
           errno == EINVAL,
       "onto itself is EINVAL");
  // Part of a mapping, out of its middle.
  char* target = Map(kPage, PROT_READ);
  p = mremap(to + kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  Fact(p == target && p[5] == 'z', "one page out of the middle");
  Fact(FAULTS(*(volatile char*)(to + kPage)), "leaves a hole");
  Fact(to[0] == 'z' && to[2 * kPage] == 'a', "around it all is well");
  return Done();
}
