// Port input and output without permission: SIGSEGV, whatever the port.
#include "fault.h"

int main(void) {
  CatchFaults();
  const unsigned short ports[] = {0, 0x40, 0x80, 0x100, 0x3f8, 0x402, 0x500, 0xf4, 0xffff};
  int in_faults = 0;
  int out_faults = 0;
  for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); ++i) {
    const unsigned short port = ports[i];
    out_faults += FAULTS(__asm__ volatile("outb %%al, %%dx"
                                          :
                                          : "a"(0), "d"(port))) &&
                  last_fault.signal == SIGSEGV && last_fault.code == SI_KERNEL;
    in_faults += FAULTS(__asm__ volatile("inb %%dx, %%al"
                                         :
                                         : "d"(port)
                                         : "rax")) &&
                 last_fault.signal == SIGSEGV && last_fault.code == SI_KERNEL;
  }
  Fact(out_faults == 9, "out to 9 ports");
  Fact(in_faults == 9, "in from 9 ports");
  int immediate = 0;
  immediate += FAULTS(__asm__ volatile("outb %%al, $0x80" : : "a"(0)));
  immediate += FAULTS(__asm__ volatile("outl %%eax, $0x10" : : "a"(0)));
  immediate += FAULTS(__asm__ volatile("inb $0x60, %%al" : : : "rax"));
  Fact(immediate == 3, "with the port in the instruction");
  return Done();
}
