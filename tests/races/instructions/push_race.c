// push and pop on a stack of the program'\''s own making.
// RACE write-write global:stack a b
// BUILD O2
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long stack[64];

static void* First(void* argument) {
  long* top = &stack[32];
  __asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; pushq $7; popq %%rcx; mov %%rbx, %%rsp"  // [a]
                   :
                   : "r"(top)
                   : "rbx", "rcx", "memory");
  return argument;
}

static void* Second(void* argument) {
  stack[31] = 2;  // [b]
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
