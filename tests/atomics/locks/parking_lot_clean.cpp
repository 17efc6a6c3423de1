// A lock of one byte whose waiters park elsewhere.
// CLEAN
#include <linux/futex.h>

#include <atomic>

#include "count_under_lock.h"

static std::atomic<unsigned char> state; /* bit 0: taken, bit 1: somebody is parked */
static std::atomic<int> bucket;

static long Futex(int operation, int argument) {
  return syscall(SYS_futex, &bucket, operation | FUTEX_PRIVATE_FLAG, argument, nullptr, nullptr, 0);
}

static void Lock() {
  for (;;) {
    unsigned char seen = 0;
    if (state.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    if (seen == 2) {
      if (state.compare_exchange_strong(seen, 3, std::memory_order_acquire)) return;
      continue;
    }
    const int ticket = bucket.load();
    if (seen == 3 || state.compare_exchange_strong(seen, 3)) Futex(FUTEX_WAIT, ticket);
  }
}

static void Unlock() {
  if (state.exchange(0, std::memory_order_release) == 3) {
    bucket.fetch_add(1);
    Futex(FUTEX_WAKE, 1 << 30);
  }
}

int main() { return CountUnderLock(); }
