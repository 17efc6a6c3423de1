// An indirect branch to an address that is not canonical is refused before it has done anything: a
// handler finds the branch and its stack, as one does that tells where a stack was smashed.
#include <cpuid.h>

#include "fault.h"

extern const char jump_here[], call_here[], return_here[], pop_here[];
static uintptr_t stack_before;
static const uintptr_t kNowhere = 0x4141414141414141;

#define BRANCH(name, before, label, branch)                                       \
  __attribute__((noinline)) static void name(uintptr_t to) {                      \
    __asm__ volatile(before "mov %%rsp, %0\n.globl " label "\n" label ": " branch \
                     : "=m"(stack_before)                                         \
                     : "r"(to)                                                    \
                     : "memory");                                                 \
  }
BRANCH(Jump, "", "jump_here", "jmp *%1")
BRANCH(Call, "", "call_here", "call *%1")
BRANCH(Return, "push %1\n", "return_here", "ret")
BRANCH(ReturnAndPop, "push %1\n", "pop_here", "ret $24")

static void Check(const char* what, const char* rip) {
  Fact(last_fault.signal == SIGSEGV && last_fault.code == SI_KERNEL, "%s: SI_KERNEL", what);
  Fact(last_fault.address == 0, "%s: si_addr", what);
  Fact(last_fault.vector == 13 && last_fault.error == 0, "%s: trap number 13", what);
  Fact(last_fault.rip == (uintptr_t)rip, "%s: RIP is the branch", what);
  Fact(last_fault.rsp == stack_before, "%s: RSP is as before", what);
}

int main(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_INTEL_ebx) {
    puts("only Intel's processors are known to refuse the branch rather than what follows it");
    return kSkipped;
  }
  CatchFaults();
  for (int again = 0; again < 2; ++again) {
    Fact(FAULTS(Jump(kNowhere)), "jump");
    Check("jump", jump_here);
    Fact(FAULTS(Call(kNowhere)), "call");
    Check("call", call_here);
    Fact(FAULTS(Return(kNowhere)), "return");
    Check("return", return_here);
    Fact(FAULTS(ReturnAndPop(kNowhere)), "return that pops");
    Check("return that pops", pop_here);
  }
  return Done();
}
