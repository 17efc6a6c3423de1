// Near branches with the prefix 66h. Intel's processors ignore it, AMD's cut rip to 16 bits, where
// nothing is mapped: either is as it should be, and the program goes on. With REX.W, as compilers
// pad calls of __tls_get_addr, it means nothing to any of them.
#include "fault.h"

// Runs a form behind the red zone, whatever it leaves on the stack. A displacement that is cut,
// too, leaves two bytes of zeros: add %al, (%rax).
#define FORM(text)                                                                    \
  __asm__ volatile("mov %%rsp, %%rbx\n\tsub $256, %%rsp\n\tmov %%rsp, %%rax\n\t" text \
                   "\n\tmov %%rbx, %%rsp"                                             \
                   :                                                                  \
                   :                                                                  \
                   : "rax", "rbx", "rcx", "cc", "memory")

enum { kForms = 8 };

static void Run(int form) {
  switch (form) {
    case 0:
      FORM(".byte 0x66, 0xe8, 0, 0, 0, 0");
      break;
    case 1:
      FORM("lea 1f(%%rip), %%rax\n\t.byte 0x66\n\tcall *%%rax\n\tud2\n1:");
      break;
    case 2:
      FORM("call 1f\n\tjmp 2f\n1:\t.byte 0x66\n\tret\n2:");
      break;
    case 3:
      FORM("sub $8, %%rsp\n\tcall 1f\n\tjmp 2f\n1:\t.byte 0x66\n\tret $8\n2:");
      break;
    case 4:
      FORM(".byte 0x66, 0xe9, 0, 0, 0, 0");
      break;
    case 5:
      FORM(".byte 0x66\n\tjmp 1f\n\tud2\n1:");
      break;
    case 6:
      FORM("lea 1f(%%rip), %%rax\n\t.byte 0x66\n\tjmp *%%rax\n\tud2\n1:");
      break;
    default:
      FORM("xor %%ecx, %%ecx\n\t.byte 0x66, 0x0f, 0x84, 0, 0, 0, 0");
      break;
  }
}

static void* RunAll(void* argument) {
  static const char* const kNames[kForms] = {"call", "indirect call", "ret",          "ret $8",
                                             "jmp",  "short jmp",     "indirect jmp", "je"};
  for (int form = 0; form < kForms; ++form) {
    const bool faulted = FAULTS(Run(form));
    Fact(!faulted || (last_fault.signal == SIGSEGV && last_fault.rip < 0x10000),
         "%s: taken, or cut to 16 bits", kNames[form]);
  }
  bool always = true;
  for (int i = 0; i < 100; ++i)
    always = always && !FAULTS(FORM(".byte 0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0"));
  Fact(always, "a call with REX.W: taken");
  return argument;
}

int main(void) {
  CatchFaults();
  pthread_join(Start(RunAll, NULL), NULL);
  RunAll(NULL);
  return Done();
}
