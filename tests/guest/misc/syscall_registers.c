// A system call changes RAX, RCX and R11 and nothing else: not the other registers, the flags, the
// vectors or the red zone.
#include "guest.h"

int main(void) {
  long bad = 0;
  for (int i = 0; i < 100; ++i) {
    long failed;
    __asm__ volatile(
        "push %%rbp\n\tsub $256, %%rsp\n\t"
        "movq $77, -8(%%rsp)\n\tmovq $78, -128(%%rsp)\n\t"
        "mov $102, %%eax\n\tmov $2, %%ebx\n\tmov $4, %%edx\n\tmov $5, %%esi\n\tmov $6, "
        "%%edi\n\tmov $7, %%ebp\n\t"
        "mov $8, %%r8d\n\tmov $9, %%r9d\n\tmov $10, %%r10d\n\tmov $12, %%r12d\n\tmov $13, "
        "%%r13d\n\tmov $14, %%r14d\n\tmov $15, %%r15d\n\t"
        "pcmpeqd %%xmm3, %%xmm3\n\t"
        "stc\n\t"
        "syscall\n"
        "3: lea 3b(%%rip), %%rax\n\t"
        "jnc 2f\n\t"
        "cmp %%rax, %%rcx\n\tjne 2f\n\t"
        "test $1, %%r11b\n\tjz 2f\n\t"
        "cmp $2, %%rbx\n\tjne 2f\n\tcmp $4, %%rdx\n\tjne 2f\n\tcmp $5, %%rsi\n\tjne 2f\n\tcmp $6, "
        "%%rdi\n\tjne 2f\n\tcmp $7, %%rbp\n\tjne 2f\n\t"
        "cmp $8, %%r8\n\tjne 2f\n\tcmp $9, %%r9\n\tjne 2f\n\tcmp $10, %%r10\n\tjne 2f\n\tcmp $12, "
        "%%r12\n\tjne 2f\n\tcmp $13, %%r13\n\tjne 2f\n\t"
        "cmp $14, %%r14\n\tjne 2f\n\tcmp $15, %%r15\n\tjne 2f\n\t"
        "cmpq $77, -8(%%rsp)\n\tjne 2f\n\tcmpq $78, -128(%%rsp)\n\tjne 2f\n\t"
        "pmovmskb %%xmm3, %%eax\n\tcmp $0xffff, %%eax\n\tjne 2f\n\t"
        "xor %%eax, %%eax\n\tjmp 4f\n"
        "2: mov $1, %%eax\n"
        "4: add $256, %%rsp\n\tpop %%rbp"
        : "=a"(failed)
        :
        : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
          "xmm3", "memory", "cc");
    bad += failed;
  }
  Fact(bad == 0, "getuid changed RAX, RCX and R11 only");
  return Done();
}
