// The system call gate of 32-bit programs, from 64-bit code: works, or is SIGSEGV where the kernel
// lacks it.
#include "fault.h"

int main(void) {
  CatchFaults();
  long result = 0;
  const bool faulted = FAULTS(__asm__ volatile("int $0x80"
                                               : "=a"(result)
                                               : "a"(20L)
                                               : "memory", "r8", "r9", "r10", "r11"));
  Fact(faulted ? last_fault.signal == SIGSEGV : result == getpid(), "int 0x80: %s",
       faulted ? "SIGSEGV" : "getpid of 32-bit programs");
  return Done();
}
