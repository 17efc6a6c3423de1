// The order is an argument of the program's own functions, which are called with others as well.
// CLEAN
// LIMIT clang-O0-nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<int> ready, seen;

static void Set(std::atomic<int>& flag, std::memory_order order) { flag.store(1, order); }
static int Get(std::atomic<int>& flag, std::memory_order order) { return flag.load(order); }

int main() {
  std::thread taker([] {
    Set(seen, std::memory_order_relaxed);
    while (Get(ready, std::memory_order_acquire) == 0) usleep(100);
    value++;
  });
  while (Get(seen, std::memory_order_relaxed) == 0) usleep(100);
  value = 1;
  Set(ready, std::memory_order_release);
  taker.join();
  return value == 2 ? Done() : 1;
}
