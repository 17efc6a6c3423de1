#include "fault.h"

int main(void) {
  CatchFaults();
  // Room behind, then none.
  char* area = Map(64 * kPage, PROT_READ | PROT_WRITE);
  munmap(area + kPage, 63 * kPage);
  strcpy(area, "first page");
  char* p = mremap(area, kPage, 8 * kPage, 0);
  Fact(p == area && strcmp(p, "first page") == 0, "grown in place");
  p[8 * kPage - 1] = 1;
  Fact(p[2 * kPage] == 0, "new pages are zero");
  char* wall =
      mmap(area + 8 * kPage, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  Fact(wall == area + 8 * kPage, "neighbour mapped");
  Fact(mremap(p, 8 * kPage, 16 * kPage, 0) == MAP_FAILED && errno == ENOMEM,
       "no room to grow: ENOMEM");
  char* moved = mremap(p, 8 * kPage, 16 * kPage, MREMAP_MAYMOVE);
  Fact(moved != MAP_FAILED && moved != p && strcmp(moved, "first page") == 0 &&
           moved[8 * kPage - 1] == 1,
       "moved with its contents");
  moved[16 * kPage - 1] = 2;
  Fact(FAULTS(*(volatile char*)p) && SegvWas(SEGV_MAPERR, p), "the old place is gone");
  Fact(mremap(moved, 16 * kPage, kPage, 0) == moved, "shrunk");
  Fact(FAULTS(*(volatile char*)(moved + kPage)) && SegvWas(SEGV_MAPERR, moved + kPage),
       "the tail is gone");
  Fact(mremap(moved + 8 * kPage, kPage, 2 * kPage, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT,
       "remapping nothing is EFAULT");
  return Done();
}
