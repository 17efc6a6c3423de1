// Sequentially consistent fences: at most one of two sees that the other has not come.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> first, second;
static int value;

int main() {
  std::thread other([] {
    second.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (first.load(std::memory_order_relaxed) == 0) value++;
  });
  first.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (second.load(std::memory_order_relaxed) == 0) value++;
  other.join();
  return value <= 1 ? Done() : 1;
}
