#include "fault.h"

int main(void) {
  CatchFaults();
  char* start = sbrk(0);
  Fact(start != (void*)-1, "break known");
  Fact(sbrk(1 << 20) == start, "grown by a megabyte");
  char* first = (char*)(((uintptr_t)start + kPage - 1) & ~(uintptr_t)(kPage - 1));
  bool zero = true;
  for (char* p = first; p < start + (1 << 20); p += 512) zero = zero && *p == 0;
  Fact(zero, "it is zero");
  memset(start, 'x', 1 << 20);
  Fact(sbrk(-(1 << 20)) == start + (1 << 20) && sbrk(0) == start, "shrunk");
  char* beyond = first + (1 << 19);
  Fact(FAULTS(*(volatile char*)beyond) && SegvWas(SEGV_MAPERR, beyond),
       "what was given back is gone");
  Fact(sbrk(1 << 20) == start && *beyond == 0, "grown again: zero again");
  Fact(syscall(SYS_brk, (long)kPage) == (long)(start + (1 << 20)),
       "a break below the heap changes nothing");
  Fact(syscall(SYS_brk, 0) == (long)(start + (1 << 20)), "brk(0) gives the break");
  Fact(syscall(SYS_brk, -1L) == (long)(start + (1 << 20)), "an impossible break changes nothing");
  return Done();
}
