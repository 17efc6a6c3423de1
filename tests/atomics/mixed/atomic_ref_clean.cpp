// std::atomic_ref on a plain long.
// CLEAN
// TAGS fast
#include <atomic>
#include <thread>

#include "race.h"

static long ready;
static int value;

int main() {
  std::thread taker([] {
    while (std::atomic_ref(ready).load(std::memory_order_acquire) == 0) usleep(100);
    value++;
  });
  value = 1;
  std::atomic_ref(ready).store(1, std::memory_order_release);
  taker.join();
  return value == 2 ? Done() : 1;
}
