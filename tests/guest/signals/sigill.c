#include "fault.h"

extern const char ud2_here[];

int main(void) {
  CatchFaults();
  Fact(FAULTS(__asm__ volatile(".globl ud2_here\nud2_here: ud2")), "ud2");
  Fact(last_fault.signal == SIGILL && last_fault.code == ILL_ILLOPN, "SIGILL, ILL_ILLOPN");
  Fact(last_fault.address == (uintptr_t)ud2_here && last_fault.rip == (uintptr_t)ud2_here,
       "si_addr and RIP are the instruction");
  Fact(last_fault.vector == 6 && last_fault.error == 0, "trap number 6");
  Fact(FAULTS(__asm__ volatile(".byte 0x06")) && last_fault.signal == SIGILL,
       "push %%es does not exist in 64-bit mode");
  return Done();
}
