#include "fault.h"

int main(void) {
  CatchFaults();
  unsigned char* page = Map(kPage, PROT_READ | PROT_WRITE);
  page[0] = 0xc3;
  Fact(FAULTS(((void (*)(void))(void*)page)()), "data cannot be executed");
  Fact(SegvWas(SEGV_ACCERR, page), "SEGV_ACCERR at the page");
  Fact(last_fault.rip == (uintptr_t)page, "RIP is the page");
  Fact(last_fault.error == 0x15, "error code 0x15: a fetch");
  mprotect(page, kPage, PROT_READ | PROT_EXEC);
  Fact(!FAULTS(((void (*)(void))(void*)page)()), "executable after mprotect");
  mprotect(page, kPage, PROT_READ);
  Fact(FAULTS(((void (*)(void))(void*)page)()) && SegvWas(SEGV_ACCERR, page),
       "and not after another");
  munmap(page, kPage);
  Fact(FAULTS(((void (*)(void))(void*)page)()) && SegvWas(SEGV_MAPERR, page),
       "unmapped: SEGV_MAPERR");
  unsigned char code[16] = {0xc3};
  Fact(FAULTS(((void (*)(void))(void*)code)()) && SegvWas(SEGV_ACCERR, code),
       "the stack cannot be executed");
  return Done();
}
