// A handler edits the interrupted context: it skips the faulting instruction and changes registers.
#include "guest.h"

static void Skip2(int signal, siginfo_t* info, void* context) {
  (void)info;
  ucontext_t* user = context;
  user->uc_mcontext.gregs[REG_RIP] += signal == SIGILL || signal == SIGSEGV ? 2 : 0;
  user->uc_mcontext.gregs[REG_RAX] = 1111;
  user->uc_mcontext.gregs[REG_RBX] = 2222;
  user->uc_mcontext.gregs[REG_R12] = 3333;
  user->uc_mcontext.gregs[REG_R15] = 4444;
  user->uc_mcontext.gregs[REG_EFL] |= 1;  // carry
}

int main(void) {
  Handle(SIGILL, Skip2, 0);
  Handle(SIGSEGV, Skip2, 0);
  long rax;
  long rbx;
  long r12;
  long r15;
  unsigned char carry;
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    __asm__ volatile(
        "clc\n\t"
        "ud2\n\t"
        "setc %4"
        : "=a"(rax), "=b"(rbx), "=r"(r12), "=r"(r15), "=&q"(carry)
        :
        : "memory", "cc");
    register long out12 __asm__("r12");
    register long out15 __asm__("r15");
    __asm__ volatile("clc\n\tud2\n\tsetc %4"
                     : "=a"(rax), "=b"(rbx), "=r"(out12), "=r"(out15), "=&q"(carry)
                     :
                     : "memory", "cc");
    r12 = out12;
    r15 = out15;
    good += rax == 1111 && rbx == 2222 && r12 == 3333 && r15 == 4444 && carry == 1;
  }
  Fact(good == 20, "ud2 skipped 20 times, registers and flags changed");
  good = 0;
  for (int i = 0; i < 20; ++i) {
    // mov (%rdi), %eax is two bytes long.
    __asm__ volatile("clc\n\tmov (%%rdi), %%eax\n\tsetc %1"
                     : "=a"(rax), "=&q"(carry)
                     : "D"(0L)
                     : "rbx", "r12", "r15", "memory", "cc");
    good += rax == 1111 && carry == 1;
  }
  Fact(good == 20, "a faulting load skipped 20 times");
  return Done();
}
