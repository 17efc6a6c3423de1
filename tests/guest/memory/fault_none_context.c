// PROT_NONE: the error code does not say "protection" if the page was never there, but si_code is
// SEGV_ACCERR.
#include "fault.h"

int main(void) {
  CatchFaults();
  volatile char* p = Map(kPage, PROT_NONE);
  Fact(FAULTS((void)*p) && SegvWas(SEGV_ACCERR, p), "load from PROT_NONE is SEGV_ACCERR");
  Fact((last_fault.error & 6) == 4, "a read by the user");
  Fact(FAULTS(*p = 1) && SegvWas(SEGV_ACCERR, p), "store to PROT_NONE is SEGV_ACCERR");
  Fact((last_fault.error & 6) == 6, "a write by the user");
  char byte;
  const int fd = OpenTemporary();
  Fact(write(fd, (const void*)p, 1) == -1 && errno == EFAULT, "write(2) from it is EFAULT");
  if (write(fd, "x", 1) != 1) return 1;
  lseek(fd, 0, SEEK_SET);
  Fact(read(fd, (void*)p, 1) == -1 && errno == EFAULT, "read(2) into it is EFAULT");
  Fact(read(fd, &byte, 1) == 1 && byte == 'x', "and read nothing");
  return Done();
}
