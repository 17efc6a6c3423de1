// Without debug info: what userspace RCU inlines into its users (those that define _LGPL_SOURCE).
// The readers wake whoever waits for them by plain loads and stores of a futex's word, which is
// found by the name of its variable.
// CLEAN
// BUILD gcc-O2-nodebug clang-O2-nodebug gcc-O0-nodebug
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "race.h"

enum { kReaders = 3, kRounds = 400 };

struct {
  atomic_ulong ctr;
  atomic_int futex;
} __attribute__((aligned(128))) urcu_memb_gp;

static void* Reads(void* argument) {
  for (int round = 0; round < kRounds; round++) {
    if (atomic_load_explicit(&urcu_memb_gp.futex, memory_order_relaxed) == -1) {
      atomic_store_explicit(&urcu_memb_gp.futex, 0, memory_order_relaxed);
      syscall(SYS_futex, &urcu_memb_gp.futex, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    usleep(50);
  }
  return argument;
}

int main(void) {
  pthread_t readers[kReaders];
  for (int i = 0; i < kReaders; i++) readers[i] = Start(Reads, NULL);
  struct timespec most = {0, 1000000};
  for (int round = 0; round < kRounds / 4; round++) {
    atomic_fetch_sub(&urcu_memb_gp.futex, 1);
    if (atomic_load_explicit(&urcu_memb_gp.futex, memory_order_relaxed) == -1)
      syscall(SYS_futex, &urcu_memb_gp.futex, FUTEX_WAIT, -1, &most, NULL, 0);
    atomic_store_explicit(&urcu_memb_gp.futex, 0, memory_order_relaxed);
  }
  for (int i = 0; i < kReaders; i++) Join(readers[i]);
  return Done();
}
