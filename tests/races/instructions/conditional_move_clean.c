// A cmov reads its operand even if it does not move, and then nobody can tell: compilers make such
// a load of `allowed ? guarded : other`.
// CLEAN
// TSAN-DIFFERS inline assembly is not instrumented
#include "race.h"

long guarded;

static void* NotAllowed(void* argument) {
  long value = 0;
  for (int i = 0; i < 300; i++) {
    __asm__ volatile(
        "test %0, %0; cmovnz %1, %0\n"
        "cmp $1, %0; cmovg %1, %0; cmovge %1, %0; cmovo %1, %0; cmova %1, %0; cmovns %1, %0"
        : "+r"(value)
        : "m"(guarded)
        : "cc");
    if (i % 50 == 0) sched_yield();
  }
  Check(value == 0);
  return argument;
}

static void* Writer(void* argument) {
  for (int i = 0; i < 300; i++) {
    guarded = i;
    Escape(&guarded);
    if (i % 50 == 0) sched_yield();
  }
  return argument;
}

int main(void) {
  RunTwo(NotAllowed, Writer);
  return Done();
}
