// Without debug info: a plain store that meets a locked instruction is taken for a plain one.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// BUILD O0 gcc-O0-nodebug gcc-O2-nodebug clang-O2-nodebug
// TAGS fast
#include "met_counter.inc"

static void* Adds(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);  // [a]
  return argument;
}

static void* Uses(void* argument) {
  *(volatile int*)&counter = 7;  // [b]
  return argument;
}
