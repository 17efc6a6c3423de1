// ThreadSanitizer's fiber interface, looked up at run time: without a tool it is not there.
#ifndef TRAPLINE_TESTS_RACES_RUNTIMES_TSAN_FIBERS_H_
#define TRAPLINE_TESTS_RACES_RUNTIMES_TSAN_FIBERS_H_

#include <dlfcn.h>

#include "fibers.h"

__attribute__((unused)) static void* TsanCurrentFiber(void) {
  void* (*function)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "__tsan_get_current_fiber");
  return function ? function() : NULL;
}

__attribute__((unused)) static void* TsanCreateFiber(void) {
  void* (*function)(unsigned) = (void* (*)(unsigned))dlsym(RTLD_DEFAULT, "__tsan_create_fiber");
  return function ? function(0) : NULL;
}

__attribute__((unused)) static void TsanSwitchToFiber(void* fiber, unsigned flags) {
  void (*function)(void*, unsigned) =
      (void (*)(void*, unsigned))dlsym(RTLD_DEFAULT, "__tsan_switch_to_fiber");
  if (function) function(fiber, flags);
}

__attribute__((unused)) static void TsanSetFiberName(void* fiber, const char* name) {
  void (*function)(void*, const char*) =
      (void (*)(void*, const char*))dlsym(RTLD_DEFAULT, "__tsan_set_fiber_name");
  if (function) function(fiber, name);
}

__attribute__((unused)) static void TsanDestroyFiber(void* fiber) {
  void (*function)(void*) = (void (*)(void*))dlsym(RTLD_DEFAULT, "__tsan_destroy_fiber");
  if (function) function(fiber);
}

// Two fibers that run once, one after the other; all switches have the same flags.
static ucontext_t main_context;
static Fiber first, second;
static void *main_handle, *first_handle, *second_handle;
static unsigned switch_flags;

static void FromFirstToSecond(void) {
  TsanSwitchToFiber(second_handle, switch_flags);
  swapcontext(&first.context, &second.context);
}

static void FromSecondToMain(void) {
  TsanSwitchToFiber(main_handle, switch_flags);
  swapcontext(&second.context, &main_context);
}

static int RunFibers(void (*run_first)(void), void (*run_second)(void), unsigned flags) {
  switch_flags = flags;
  Prepare(&first, run_first);
  Prepare(&second, run_second);
  main_handle = TsanCurrentFiber();
  second_handle = TsanCreateFiber();
  first_handle = TsanCreateFiber();
  TsanSetFiberName(first_handle, "first");
  TsanSwitchToFiber(first_handle, switch_flags);
  swapcontext(&main_context, &first.context);
  TsanDestroyFiber(first_handle);
  TsanDestroyFiber(second_handle);
  return Done();
}

#endif  // TRAPLINE_TESTS_RACES_RUNTIMES_TSAN_FIBERS_H_
