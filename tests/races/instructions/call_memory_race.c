// A call through a table in memory reads the table.
// RACE read-write global:table a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

static void Landing(void) { Use(1); }
static void (*table[8])(void);

static void* First(void* argument) {
  __asm__ volatile("sub $136, %%rsp; call *%0; add $136, %%rsp"  // [a]
                   :
                   : "m"(table[3])
                   : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  return argument;
}

static void* Second(void* argument) {
  table[3] = Landing;  // [b]
  return argument;
}

int main(void) {
  table[3] = Landing;
  RunTwo(First, Second);
  return Done();
}
