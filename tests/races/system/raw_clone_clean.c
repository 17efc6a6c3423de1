// A thread made by clone itself comes after who made it, and before who waits for the word that the
// kernel clears at its end.
// CLEAN
// TSAN-DIFFERS it does not know threads made by clone
#include <linux/futex.h>
#include <sched.h>

#include "race.h"

enum { kStack = 65536 };
int value;
static volatile int alive = 1;
static char stack[kStack] __attribute__((aligned(64)));

static int Child(void* argument) {
  value++;
  syscall(SYS_exit, 0);
  Use((long)argument);
  return 0;
}

int main(void) {
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  value = 1;
  Check(clone(Child, stack + kStack, flags, NULL, NULL, NULL, (int*)&alive) > 0);
  while (alive != 0) syscall(SYS_futex, &alive, FUTEX_WAIT, 1, NULL, NULL, 0);
  value++;
  return value == 3 ? Done() : 1;
}
