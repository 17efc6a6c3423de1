// Threads made by clone itself, joined by the word that the kernel clears.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it does not know threads made by clone
#include <linux/futex.h>
#include <sched.h>

#include "race.h"

enum { kStack = 65536 };
int value;
int alive = 1;
static char stack[kStack] __attribute__((aligned(64)));

static int Child(void* argument) {
  value = 1;  // [a]
  syscall(SYS_exit, 0);
  Use((long)argument);
  return 0;
}

int main(void) {
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  Check(clone(Child, stack + kStack, flags, NULL, NULL, NULL, &alive) > 0);
  value = 2;  // [b]
  while (__atomic_load_n(&alive, __ATOMIC_SEQ_CST) != 0) {
    syscall(SYS_futex, &alive, FUTEX_WAIT, 1, NULL, NULL, 0);
  }
  return Done();
}
