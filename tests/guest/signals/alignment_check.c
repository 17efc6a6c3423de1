#include "fault.h"

static const GuestHandler on_fault = OnFault;

// The kernel leaves the flag set for the handler, where any code may be misaligned: clear it first.
__attribute__((naked)) static void ClearThenHandle(__attribute__((unused)) int signal,
                                                   __attribute__((unused)) siginfo_t* info,
                                                   __attribute__((unused)) void* context) {
  __asm__ volatile("pushfq\n\tandq $~0x40000, (%%rsp)\n\tpopfq\n\tjmp *%0"
                   :
                   : "m"(on_fault)
                   : "memory");
}

int main(void) {
  CatchFaults();
  Handle(SIGBUS, ClearThenHandle, 0);
  _Alignas(16) char bytes[32] = {0};
  const bool faulted =
      FAULTS(__asm__ volatile("sub $128, %%rsp\n\t"
                              "pushfq\n\t"
                              "orq $0x40000, (%%rsp)\n\t"
                              "popfq\n\t"
                              "movl 1(%0), %%eax\n\t"
                              "pushfq\n\t"
                              "andq $~0x40000, (%%rsp)\n\t"
                              "popfq\n\t"
                              "add $128, %%rsp"
                              :
                              : "r"(bytes)
                              : "rax", "memory", "cc"));
  __asm__ volatile(
      "sub $128, %%rsp\n\tpushfq\n\tandq $~0x40000, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
      :
      :
      : "memory", "cc");
  if (!faulted) Skip("this processor does not check alignment (QEMU's emulated ones do not)");
  Fact(faulted, "a misaligned load with the AC flag");
  Fact(last_fault.signal == SIGBUS && last_fault.code == BUS_ADRALN, "SIGBUS, BUS_ADRALN");
  Fact(last_fault.vector == 17, "trap number 17");
  Fact(FAULTS(__asm__ volatile("movaps 1(%0), %%xmm0"
                               :
                               : "r"(bytes)
                               : "xmm0")) &&
           last_fault.signal == SIGSEGV && last_fault.code == SI_KERNEL,
       "movaps misaligned: SIGSEGV, SI_KERNEL");
  return Done();
}
