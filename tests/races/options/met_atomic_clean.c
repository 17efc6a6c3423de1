// Without debug info: a plain load that meets a locked instruction is taken for an atomic one.
// CLEAN
// BUILD gcc-O2-nodebug clang-O2-nodebug stripped
// OPTIONS --explain
// SAYS     no debug info: it met an atomic operation on the word that nothing orders
// TSAN-DIFFERS it has no such option
// TAGS fast
#include "met_counter.inc"

static void* Adds(void* argument) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
  return argument;
}

static void* Uses(void* argument) {
  Use(__atomic_load_n(&counter, __ATOMIC_RELAXED));
  return argument;
}
