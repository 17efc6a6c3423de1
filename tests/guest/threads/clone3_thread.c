#include <linux/sched.h>

#include "raw_clone.h"

static int id = -1;  // the child stores its id when it first runs
static int ran;

__attribute__((used)) static void Child(void) {
  Store(&ran, (int)RawSystemCall(SYS_gettid, 0, 0, 0));
  RawSystemCall(SYS_exit, 0, 0, 0);
}

int main(void) {
  const size_t size = 65536;
  char* stack = Map(size, PROT_READ | PROT_WRITE);
  struct clone_args arguments;
  memset(&arguments, 0, sizeof(arguments));
  int parent_word = 0;
  arguments.flags = kThreadFlags | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
  arguments.stack = (uint64_t)(uintptr_t)stack;
  arguments.stack_size = size;
  arguments.parent_tid = (uint64_t)(uintptr_t)&parent_word;
  arguments.child_tid = (uint64_t)(uintptr_t)&id;
  long result;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "call Child\n\t"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone3), "D"(&arguments), "S"(sizeof(arguments))
      : "rcx", "r11", "memory", "rdx", "r8", "r9", "r10");
  if (result == -ENOSYS) Skip("no clone3");
  Fact(result > 0, "clone3 gave an id");
  AwaitCleared(&id);
  Fact(parent_word == result, "the id was stored for the parent");
  Fact(ran == result, "the thread ran on the given stack");
  return Done();
}
