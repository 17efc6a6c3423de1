// Code written and executed on one page that is writable and executable, and on one toggled between
// the two.
#include "emit.h"
#include "fault.h"

int main(void) {
  CatchFaults();
  unsigned char* page = Map(kPage, PROT_READ | PROT_WRITE | PROT_EXEC);
  int good = 0;
  for (int i = 0; i < 1000; ++i) {
    Emit(page, i);
    good += ((Function)(void*)page)() == i;
  }
  Fact(good == 1000, "1000 functions on a writable and executable page");
  unsigned char* toggled = Map(kPage, PROT_READ | PROT_WRITE);
  good = 0;
  for (int i = 0; i < 100; ++i) {
    mprotect(toggled, kPage, PROT_READ | PROT_WRITE);
    Emit(toggled + i, i);
    mprotect(toggled, kPage, PROT_READ | PROT_EXEC);
    good += ((Function)(void*)(toggled + i))() == i;
  }
  Fact(good == 100, "100 functions on a page toggled between writing and executing");
  Fact(FAULTS(*(volatile unsigned char*)toggled = 1) && SegvWas(SEGV_ACCERR, toggled),
       "not writable while executable");
  return Done();
}
