// The program unmaps the code it runs: death by SIGSEGV at the next instruction.
#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "unmapping the code");
  const uintptr_t page = (uintptr_t)main & ~(uintptr_t)(kPage - 1);
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_munmap), "D"(page - kPage), "S"(4L * kPage)
                   : "rcx", "r11", "memory");
  return (int)result;
}
