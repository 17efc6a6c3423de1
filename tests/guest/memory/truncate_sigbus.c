#include "fault.h"

int main(void) {
  CatchFaults();
  const int fd = OpenTemporary();
  if (ftruncate(fd, 3 * kPage) != 0) return 1;
  volatile char* p = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  p[0] = p[kPage] = p[2 * kPage] = 'x';
  Fact(FAULTS((void)p[3 * kPage + 5]), "beyond the end from the start");
  Fact(last_fault.signal == SIGBUS && last_fault.code == BUS_ADRERR, "SIGBUS, BUS_ADRERR");
  Fact(last_fault.address == (uintptr_t)(p + 3 * kPage + 5), "si_addr");
  if (ftruncate(fd, kPage + 10) != 0) return 1;
  Fact(p[0] == 'x' && p[kPage] == 'x', "what is left is left");
  Fact(!FAULTS((void)p[2 * kPage - 1]), "the rest of the last page is there");
  Fact(FAULTS(p[2 * kPage] = 1) && last_fault.signal == SIGBUS && last_fault.code == BUS_ADRERR,
       "a page cut off by ftruncate: SIGBUS");
  Fact(last_fault.address == (uintptr_t)(p + 2 * kPage), "si_addr");
  if (ftruncate(fd, 4 * kPage) != 0) return 1;
  Fact(!FAULTS(p[3 * kPage] = 1) && p[2 * kPage] == 0, "grown again: zero");
  return Done();
}
