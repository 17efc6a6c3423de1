// std::atomic_ref over a plain int.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

int value;
int flag;

int main() {
  std::thread receiver([] {
    const std::atomic_ref<int> ready(flag);
    while (ready.load(std::memory_order_acquire) == 0) usleep(1000);
    value++;
  });
  value = 1;
  std::atomic_ref<int>(flag).store(1, std::memory_order_release);
  receiver.join();
  return value == 2 ? Done() : 1;
}
