// All general registers and the flags survive asynchronous handlers in a loop that never calls
// anything.
#include "guest.h"

static int ticks;
static void Tick(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Add(&ticks, 1);
}

int main(void) {
  Handle(SIGALRM, Tick, SA_RESTART);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  long bad = 0;
  __asm__ volatile(
      "push %%rbp\n\t"
      "mov $1, %%eax\n\tmov $2, %%ebx\n\tmov $3, %%ecx\n\tmov $4, %%edx\n\tmov $5, %%esi\n\tmov "
      "$7, %%ebp\n\t"
      "mov $8, %%r8d\n\tmov $9, %%r9d\n\tmov $10, %%r10d\n\tmov $11, %%r11d\n\tmov $12, "
      "%%r12d\n\tmov $13, %%r13d\n\tmov $14, %%r14d\n\tmov $15, %%r15d\n"
      "1:\n\t"
      "cmp $1, %%rax\n\tjne 2f\n\tcmp $2, %%rbx\n\tjne 2f\n\tcmp $3, %%rcx\n\tjne 2f\n\tcmp $4, "
      "%%rdx\n\tjne 2f\n\tcmp $5, %%rsi\n\tjne 2f\n\t"
      "cmp $7, %%rbp\n\tjne 2f\n\tcmp $8, %%r8\n\tjne 2f\n\tcmp $9, %%r9\n\tjne 2f\n\tcmp $10, "
      "%%r10\n\tjne 2f\n\tcmp $11, %%r11\n\tjne 2f\n\t"
      "cmp $12, %%r12\n\tjne 2f\n\tcmp $13, %%r13\n\tjne 2f\n\tcmp $14, %%r14\n\tjne 2f\n\tcmp "
      "$15, %%r15\n\tjne 2f\n\t"
      "stc\n\tjnc 2f\n\tclc\n\tjc 2f\n\tstd\n\tpushfq\n\tcld\n\tbtq $10, (%%rsp)\n\tlea 8(%%rsp), "
      "%%rsp\n\tjnc 2f\n\t"
      "cmpl $20, (%%rdi)\n\tjl 1b\n\t"
      "xor %%edi, %%edi\n\tjmp 3f\n"
      "2: mov $1, %%edi\n"
      "3: pop %%rbp"
      : "=D"(bad)
      : "D"(&ticks)
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "memory", "cc");
  Fact(bad == 0, "registers and flags survive 20 handlers");
  return Done();
}
