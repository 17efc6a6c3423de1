// The order is a parameter of a template.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

template <std::memory_order kStore, std::memory_order kLoad>
class Flag {
 public:
  void Set() { set_.store(true, kStore); }
  bool IsSet() const { return set_.load(kLoad); }

 private:
  std::atomic<bool> set_{false};
};

static int value;
static Flag<std::memory_order_relaxed, std::memory_order_relaxed> started;
static Flag<std::memory_order_release, std::memory_order_acquire> ready;

int main() {
  std::thread taker([] {
    started.Set();
    while (!ready.IsSet()) usleep(100);
    value++;
  });
  while (!started.IsSet()) usleep(100);
  value = 1;
  ready.Set();
  taker.join();
  return value == 2 ? Done() : 1;
}
