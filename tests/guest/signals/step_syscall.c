// A single step over a system call: the trap comes after it.
#include "guest.h"

static volatile int steps;
static void Step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  ++steps;
}

int main(void) {
  Handle(SIGTRAP, Step, 0);
  long id;
  __asm__ volatile(
      "sub $128, %%rsp\n\t"
      "pushfq\n\t"
      "orq $0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "mov $39, %%eax\n\t"
      "syscall\n\t"
      "nop\n\t"
      "pushfq\n\t"
      "andq $~0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "add $128, %%rsp"
      : "=a"(id)
      :
      : "rcx", "r11", "memory", "cc");
  Fact(id == getpid(), "the system call worked");
  // Whether the trap comes before or after the next instruction differs between processors.
  Fact(steps == 5 || steps == 6, "a signal for each instruction, but perhaps the system call");
  return Done();
}
