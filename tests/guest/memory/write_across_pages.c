// An access that straddles two pages names the byte that faults.
#include "fault.h"

int main(void) {
  CatchFaults();
  char* p = Map(2 * kPage, PROT_READ | PROT_WRITE);
  mprotect(p + kPage, kPage, PROT_READ);
  memset(p, 1, kPage);
  volatile uint64_t* straddling = (volatile uint64_t*)(void*)(p + kPage - 4);
  Fact(FAULTS(__asm__ volatile("movq $-1, (%0)"
                               :
                               : "r"(straddling)
                               : "memory")),
       "store across the border faults");
  Fact(SegvWas(SEGV_ACCERR, p + kPage), "si_addr is the first byte of the second page");
  Fact(p[kPage - 1] == 1 && p[kPage - 4] == 1, "nothing was stored");
  Fact(!FAULTS((void)*straddling), "a load across the border is fine");
  return Done();
}
