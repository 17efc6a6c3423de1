#include "fault.h"

int main(void) {
  CatchFaults();
  volatile int zero = 0;
  volatile int one = 1;
  Fact(FAULTS(one = one / zero), "division by zero");
  Fact(last_fault.signal == SIGFPE && last_fault.code == FPE_INTDIV, "SIGFPE, FPE_INTDIV");
  Fact(last_fault.address == last_fault.rip && last_fault.rip != 0, "si_addr is the instruction");
  Fact(last_fault.vector == 0, "trap number 0");
  volatile int lowest = INT_MIN;
  volatile int minus = -1;
  Fact(FAULTS(one = lowest / minus) && last_fault.code == FPE_INTDIV, "INT_MIN / -1 too");
  // SSE division with its exception unmasked.
  unsigned mxcsr = 0x1f80 & ~0x200U;
  const unsigned normal = 0x1f80;
  Fact(FAULTS(__asm__ volatile("ldmxcsr %0\n\tdivsd %2, %1"
                               :
                               : "m"(mxcsr), "x"(1.0), "x"(0.0))),
       "1.0 / 0.0 unmasked");
  Fact(last_fault.signal == SIGFPE && last_fault.code == FPE_FLTDIV && last_fault.vector == 19,
       "SIGFPE, FPE_FLTDIV, trap number 19");
  __asm__ volatile("ldmxcsr %0" : : "m"(normal));
  volatile double quotient = 1.0;
  Fact(!FAULTS(quotient = quotient / (double)zero), "masked: no signal");
  return Done();
}
