// Faults that are no page faults: SIGSEGV with SI_KERNEL and no address.
#include "fault.h"

static void Check(const char* what) {
  Fact(last_fault.signal == SIGSEGV && last_fault.code == SI_KERNEL, "%s: SIGSEGV, SI_KERNEL",
       what);
  Fact(last_fault.address == 0, "%s: si_addr 0", what);
  Fact(last_fault.vector == 13, "%s: trap number 13", what);
}

int main(void) {
  CatchFaults();
  volatile int* bad = (volatile int*)0x800000000000;
  Fact(FAULTS((void)*bad), "non-canonical address");
  Check("non-canonical");
  bad = (volatile int*)0xdeadbeefdeadbeef;
  Fact(FAULTS(*bad = 1), "another, written");
  Check("non-canonical write");
  Fact(FAULTS(__asm__ volatile("hlt")), "hlt");
  Check("hlt");
  Fact(FAULTS(__asm__ volatile("cli")), "cli");
  Check("cli");
  Fact(FAULTS(__asm__ volatile("mov %%cr3, %%rax" : : : "rax")), "mov %%cr3");
  Check("mov cr3");
  Fact(FAULTS(__asm__ volatile("rdmsr" : : "c"(0xc0000080) : "rax", "rdx")), "rdmsr");
  Check("rdmsr");
  return Done();
}
