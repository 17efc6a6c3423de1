// Looked at with relaxed order, then loaded again with acquire order.
// CLEAN
// LIMIT clang-O0-nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<int> ready;

int main() {
  std::thread taker([] {
    while (ready.load(std::memory_order_relaxed) == 0) usleep(100);
    if (ready.load(std::memory_order_acquire) == 1) value++;
  });
  value = 1;
  ready.store(1, std::memory_order_release);
  taker.join();
  return value == 2 ? Done() : 1;
}
