// The order is chosen at run time, between loads that are the same instruction.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<int> ready;

__attribute__((noinline)) static int Get(const std::atomic<int>& flag, bool acquires) {
  if (acquires) return flag.load(std::memory_order_acquire);
  return flag.load(std::memory_order_relaxed);
}

int main(int argc, char**) {
  std::thread taker([argc] {
    while (Get(ready, argc > 0) == 0) usleep(100);
    value++;
  });
  value = 1;
  ready.store(1, std::memory_order_release);
  taker.join();
  Use(Get(ready, argc > 1));
  return value == 2 ? Done() : 1;
}
