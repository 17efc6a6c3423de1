// A biased lock: its owner takes it by relaxed stores, others by membarrier.
#include <linux/membarrier.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "race.h"
#include "run_threads.h"

static std::atomic<int> owner_inside, others;
static std::mutex mutex;

static void OwnerEnter() {
  for (;;) {
    owner_inside.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!others.load(std::memory_order_acquire)) return;
    owner_inside.store(0, std::memory_order_release);
    while (others.load(std::memory_order_acquire)) std::this_thread::yield();
  }
}

static void OwnerLeave() { owner_inside.store(0, std::memory_order_release); }

static void OtherEnter() {
  mutex.lock();
  others.store(1, std::memory_order_relaxed);
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
  while (owner_inside.load(std::memory_order_acquire)) std::this_thread::yield();
}

static void OtherLeave() {
  others.store(0, std::memory_order_release);
  mutex.unlock();
}

template <typename Owner, typename Other>
int RunBiased(Owner owner, Other other) {
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
  RunThreads(owner, other);
  return Done();
}
