// A biased lock: its owner takes it by relaxed stores, others by membarrier.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <linux/membarrier.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "race.h"

static std::atomic<int> owner_inside, others;
static std::mutex mutex;
long value;

static void OwnerEnter() {
  for (;;) {
    owner_inside.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!others.load(std::memory_order_acquire)) return;
    owner_inside.store(0, std::memory_order_release);
    while (others.load(std::memory_order_acquire)) std::this_thread::yield();
  }
}

static void OtherEnter() {
  mutex.lock();
  others.store(1, std::memory_order_relaxed);
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
  while (owner_inside.load(std::memory_order_acquire)) std::this_thread::yield();
}

int main() {
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
  std::thread owner([] {
    for (int i = 0; i < 20; i++) {
      OwnerEnter();
      value++;
      owner_inside.store(0, std::memory_order_release);
    }
  });
  std::thread other([] {
    for (int i = 0; i < 5; i++) {
      OtherEnter();
      value++;
      others.store(0, std::memory_order_release);
      mutex.unlock();
    }
  });
  owner.join();
  other.join();
  return Done();
}
