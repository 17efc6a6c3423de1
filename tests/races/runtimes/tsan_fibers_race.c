// ThreadSanitizer's fibers, switched without order: each is a thread of its own.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include "tsan_fibers.h"

int value;
static ucontext_t main_context;
static Fiber first, second;
static void *main_handle, *first_handle, *second_handle;

static void First(void) {
  value = 1;  // [a]
  TsanSwitchToFiber(second_handle, 1);
  swapcontext(&first.context, &second.context);
}

static void Second(void) {
  value = 2;  // [b]
  TsanSwitchToFiber(main_handle, 1);
  swapcontext(&second.context, &main_context);
}

int main(void) {
  Prepare(&first, First);
  Prepare(&second, Second);
  main_handle = TsanCurrentFiber();
  second_handle = TsanCreateFiber();
  first_handle = TsanCreateFiber();
  TsanSetFiberName(first_handle, "first");
  TsanSwitchToFiber(first_handle, 1);
  swapcontext(&main_context, &first.context);
  TsanDestroyFiber(first_handle);
  TsanDestroyFiber(second_handle);
  return Done();
}
