// Relaxed updates by others continue the release sequence: what was released first is still taken
// in.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<int> stage;

int main() {
  std::thread counter([] {
    int expected = 1;
    while (!stage.compare_exchange_weak(expected, 2, std::memory_order_relaxed)) {
      expected = 1;
      usleep(100);
    }
    stage.fetch_add(1, std::memory_order_relaxed);
  });
  std::thread taker([] {
    while (stage.load(std::memory_order_acquire) != 3) usleep(100);
    value++;
  });
  value = 1;
  stage.store(1, std::memory_order_release);
  counter.join();
  taker.join();
  return value == 2 ? Done() : 1;
}
