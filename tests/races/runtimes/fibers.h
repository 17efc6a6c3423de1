// Fibers on ucontext for the programs here: what a small user-level threading library does. The
// library's own hand-overs order nothing and are ordered by nothing that the detector sees: it asks
// the kernel whether a carrier has ended.
#ifndef TRAPLINE_TESTS_RACES_RUNTIMES_FIBERS_H_
#define TRAPLINE_TESTS_RACES_RUNTIMES_FIBERS_H_

#include <semaphore.h>
#include <ucontext.h>

#include "race.h"
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

// Runs function(argument) in a thread and waits for its end, which orders nothing. Another thread
// must be there, or everything were ordered when it has ended.
typedef struct Unordered {
  ThreadFunction function;
  void* argument;
  pid_t* id;
} Unordered;

__attribute__((unused)) static void* RunUnordered(void* argument) {
  Unordered* const run = (Unordered*)argument;
  __atomic_store_n(run->id, ThreadId(), __ATOMIC_SEQ_CST);
  return run->function(run->argument);
}

__attribute__((unused)) static pthread_t RunToEnd(ThreadFunction function, void* argument) {
  static Unordered runs[8];
  static pid_t ids[8];
  static int used;
  Unordered* const run = &runs[used];
  pid_t* const id_of = &ids[used++];
  *run = (Unordered){function, argument, id_of};
  const pthread_t thread = Start(RunUnordered, run);
  pid_t id;
  while ((id = __atomic_load_n(id_of, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  return thread;
}

static sem_t fibers_never;

__attribute__((unused)) static void* Idle(void* argument) {
  sem_wait(&fibers_never);
  return argument;
}

__attribute__((unused)) static pthread_t StartIdle(void) {
  sem_init(&fibers_never, 0, 0);
  return Start(Idle, NULL);
}

__attribute__((unused)) static void EndIdle(pthread_t idle) {
  sem_post(&fibers_never);
  Join(idle);
}

#endif  // TRAPLINE_TESTS_RACES_RUNTIMES_FIBERS_H_
