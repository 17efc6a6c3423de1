// Relaxed accesses with fences: the fence makes them hand over.
// CLEAN
// TSAN-DIFFERS it does not know fences
#include <atomic>
#include <thread>

#include "race.h"

int value;
std::atomic<bool> ready;

int main() {
  std::thread receiver([] {
    while (!ready.load(std::memory_order_relaxed)) usleep(1000);
    std::atomic_thread_fence(std::memory_order_acquire);
    value++;
  });
  value = 1;
  std::atomic_thread_fence(std::memory_order_release);
  ready.store(true, std::memory_order_relaxed);
  receiver.join();
  return value == 2 ? Done() : 1;
}
