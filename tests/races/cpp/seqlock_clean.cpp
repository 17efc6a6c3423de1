// A sequence lock with atomic data: readers retry.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

std::atomic<unsigned> sequence;
std::atomic<int> a, b;

int main() {
  std::thread reader([] {
    for (int i = 0; i < 5; i++) {
      unsigned before = 0, after = 1;
      int x = 0, y = 0;
      do {
        before = sequence.load(std::memory_order_acquire);
        x = a.load(std::memory_order_relaxed);
        y = b.load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        after = sequence.load(std::memory_order_relaxed);
      } while (before != after || before % 2 != 0);
      Check(x == y);
    }
  });
  for (int i = 1; i < 6; i++) {
    sequence.store(2 * i - 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    a.store(i, std::memory_order_relaxed);
    b.store(i, std::memory_order_relaxed);
    sequence.store(2 * i, std::memory_order_release);
  }
  reader.join();
  return Done();
}
