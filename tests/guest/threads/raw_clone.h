// Threads without libc: clone(2) itself. The thread function must not use libc nor thread-local
// variables.
#ifndef TRAPLINE_TESTS_GUEST_THREADS_RAW_CLONE_H_
#define TRAPLINE_TESTS_GUEST_THREADS_RAW_CLONE_H_

#include <linux/futex.h>

#include "guest.h"

enum {
  kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
};

__attribute__((unused)) static long RawSystemCall(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

// Starts function(argument) on the stack that ends at `stack_end`; returns the thread's id or
// -errno.
__attribute__((unused)) static long RawClone(long flags, void* stack_end, int* parent_id,
                                             int* child_id, void* tls, void (*function)(void*),
                                             void* argument) {
  void** stack = (void**)((uintptr_t)stack_end & ~(uintptr_t)15);
  *--stack = argument;
  *--stack = (void*)function;
  long result;
  register int* r10 __asm__("r10") = child_id;
  register void* r8 __asm__("r8") = tls;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "mov $60, %%eax\n\t"
      "xor %%edi, %%edi\n\t"
      "syscall\n\t"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone), "D"(flags), "S"(stack), "d"(parent_id), "r"(r10), "r"(r8)
      : "rcx", "r11", "memory");
  return result;
}

// Waits until the kernel clears *id at the thread's end (CLONE_CHILD_CLEARTID).
__attribute__((unused)) static void AwaitCleared(int* id) {
  int seen;
  while ((seen = Load(id)) != 0) syscall(SYS_futex, id, FUTEX_WAIT, seen, NULL, NULL, 0);
}

#endif  // TRAPLINE_TESTS_GUEST_THREADS_RAW_CLONE_H_
