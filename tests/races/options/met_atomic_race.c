// Without debug info: a plain load that meets a locked instruction is taken for an atomic one, but
// for --plain.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// BUILD O0 gcc-O0-nodebug gcc-O2-nodebug clang-O2-nodebug
// OPTIONS --plain=counter
// TAGS fast
#include "met_counter.inc"

static void* Adds(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);  // [a]
  return argument;
}

static void* Uses(void* argument) {
  Use(counter);  // [b]
  return argument;
}
