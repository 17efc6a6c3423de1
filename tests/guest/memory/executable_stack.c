// A function nested in C needs a trampoline on the stack: the linker marks the program, and the
// stack can be executed.
#include "guest.h"

static int Apply(int (*function)(int), int value) { return function(value); }

static int Outer(int base) {
  __extension__ int AddBase(int value) { return value + base; }
  return Apply(AddBase, 10);
}

static void* Thread(void* argument) { return (void*)(intptr_t)Outer((int)(intptr_t)argument); }

int main(void) {
  Fact(Outer(5) == 15, "a trampoline on main's stack");
  void* result;
  pthread_join(Start(Thread, (void*)7), &result);
  Fact((intptr_t)result == 17, "and on a thread's");
  return Done();
}
