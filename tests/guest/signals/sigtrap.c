#include "fault.h"

extern const char after_int3[];
static volatile int steps;
static volatile bool step_codes_good = true;

static void Step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  ++steps;
  step_codes_good = step_codes_good && info->si_code == TRAP_TRACE;
}

int main(void) {
  CatchFaults();
  Fact(FAULTS(__asm__ volatile("int3\n.globl after_int3\nafter_int3:")), "int3");
  Fact(last_fault.signal == SIGTRAP && last_fault.code == SI_KERNEL, "SIGTRAP, SI_KERNEL");
  Fact(last_fault.rip == (uintptr_t)after_int3, "RIP is behind the instruction");
  Fact(last_fault.vector == 3, "trap number 3");
  Handle(SIGTRAP, Step, 0);
  // The trap flag: one signal after each instruction, up to and including the popf that clears it.
  __asm__ volatile(
      "sub $128, %%rsp\n\t"
      "pushfq\n\t"
      "orq $0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "nop\n\t"
      "nop\n\t"
      "nop\n\t"
      "pushfq\n\t"
      "andq $~0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "add $128, %%rsp"
      :
      :
      : "memory", "cc");
  Fact(steps == 6, "single step: 6 signals for 6 instructions");
  Fact(step_codes_good, "si_code TRAP_TRACE");
  return Done();
}
