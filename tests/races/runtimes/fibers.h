// Fibers on ucontext for the programs here: what a small user-level threading library does. The
// library's own hand-overs order nothing and are ordered by nothing that the detector sees: it asks
// the kernel whether a carrier has ended.
#ifndef TRAPLINE_TESTS_RACES_RUNTIMES_FIBERS_H_
#define TRAPLINE_TESTS_RACES_RUNTIMES_FIBERS_H_

#include <ucontext.h>

#include "race.h"
#include "run_to_end.h"
#include "trapline/client.h"

typedef struct Fiber {
  char stack[65536];
  ucontext_t context;   // above the stack: who leaves it may still use some words there
  ucontext_t* carrier;  // where Yield goes
} Fiber;

__attribute__((unused)) static void Prepare(Fiber* fiber, void (*function)(void)) {
  Check(getcontext(&fiber->context) == 0);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = sizeof(fiber->stack);
  fiber->context.uc_link = NULL;
  makecontext(&fiber->context, function, 0);
}

// Runs the fiber on the calling thread until it yields. `announced`: the detector is told.
__attribute__((unused)) static void Resume(Fiber* fiber, int announced) {
  ucontext_t here;
  trapline_ignore_begin(TRAPLINE_READS_AND_WRITES);
  fiber->carrier = &here;
  trapline_ignore_end(TRAPLINE_READS_AND_WRITES);
  if (announced) trapline_fiber_switch(fiber);
  Check(swapcontext(&here, &fiber->context) == 0);
}

__attribute__((unused)) static void Yield(Fiber* fiber, int announced) {
  trapline_ignore_begin(TRAPLINE_READS_AND_WRITES);
  ucontext_t* const carrier = fiber->carrier;
  trapline_ignore_end(TRAPLINE_READS_AND_WRITES);
  if (announced) trapline_fiber_switch(NULL);
  Check(swapcontext(&fiber->context, carrier) == 0);
}

#endif  // TRAPLINE_TESTS_RACES_RUNTIMES_FIBERS_H_
