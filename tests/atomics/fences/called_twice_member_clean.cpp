// The fence comes after the store, and before that of the next call, which publishes what was there
// before.
// CLEAN
// LIMIT clang-O0-nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<int> ready;

static void Publish(int stage) {
  ready.store(stage, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
}

int main() {
  std::thread giver([] {
    value = 1;
    Publish(1);
    Publish(2);
  });
  std::thread taker([] {
    while (ready.load(std::memory_order_acquire) != 2) usleep(100);
    value++;
  });
  giver.join();
  taker.join();
  return value == 2 ? Done() : 1;
}
