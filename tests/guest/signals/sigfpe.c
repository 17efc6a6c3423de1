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
  return Done();
}
