// SSE division with its exception unmasked.
#include "fault.h"

int main(void) {
  CatchFaults();
  unsigned mxcsr = 0x1f80 & ~0x200U;
  const unsigned normal = 0x1f80;
  const bool faulted = FAULTS(__asm__ volatile("ldmxcsr %0\n\tdivsd %2, %1"
                                               :
                                               : "m"(mxcsr), "x"(1.0), "x"(0.0)));
  if (!faulted) Skip("this processor raises no SSE exceptions (QEMU's emulated ones do not)");
  Fact(faulted, "1.0 / 0.0 unmasked");
  Fact(last_fault.signal == SIGFPE && last_fault.code == FPE_FLTDIV && last_fault.vector == 19,
       "SIGFPE, FPE_FLTDIV, trap number 19");
  __asm__ volatile("ldmxcsr %0" : : "m"(normal));
  volatile double zero = 0.0;
  volatile double quotient = 1.0;
  Fact(!FAULTS(quotient = quotient / zero), "masked: no signal");
  return Done();
}
