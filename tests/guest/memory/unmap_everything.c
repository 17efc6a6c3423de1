// The program unmaps the whole address space below its limit, stack and all.
#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "unmapping everything");
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_munmap), "D"(0L), "S"(0x7ffffffff000)
                   : "rcx", "r11", "memory");
  return (int)result;
}
