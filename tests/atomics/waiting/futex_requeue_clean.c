// A futex made anew by FUTEX_REQUEUE and a word that is set before FUTEX_WAKE, as in a rendezvous.
// CLEAN
// LIMIT O0-nodebug: on x86-64 a release store is a plain mov
#include <linux/futex.h>
#include <stdatomic.h>

#include "race.h"

static atomic_uint gate, other;
int value;

static void* Waiter(void* argument) {
  while (atomic_load_explicit(&gate, memory_order_acquire) == 0)
    syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  value = 2;
  return argument;
}

static void* Opener(void* argument) {
  usleep(2000);
  value = 1;
  atomic_store_explicit(&gate, 1, memory_order_release);
  syscall(SYS_futex, &gate, FUTEX_REQUEUE_PRIVATE, 0, 1, &other, 0);
  syscall(SYS_futex, &other, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0);
  return argument;
}

int main(void) {
  RunTwo(Opener, Waiter);
  return Done();
}
